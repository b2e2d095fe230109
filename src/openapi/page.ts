/** The reference for people: a page that shows `/openapi.json` by `@scalar/api-reference`, served from here. */
import { ROUTES } from '../../schemas/routes.ts'
import { escapeHtml } from '../core/html-text.ts'

/** Nothing is loaded from, sent to or offered at another host. */
const SETTINGS = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  mcp: { disabled: true },
  agent: { disabled: true },
  documentDownloadType: 'json',
  operationTitleSource: 'path',
  authentication: { preferredSecurityScheme: 'bearer' },
}

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate reference</title>
</head>
<body>
<noscript>This page needs JavaScript. <a href="/openapi.json">openapi.json</a> has the same for programs.</noscript>
<script id="api-reference" data-url="/openapi.json" data-configuration="${escapeHtml(JSON.stringify(SETTINGS))}"></script>
<script src="${ROUTES.readReferenceScript[1]}"></script>
</body>
</html>
`
