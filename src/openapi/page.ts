/** The reference as one page without a script or an outside file, made of the OpenAPI document. */
import { FAILURES } from '../../schemas/failure.ts'
import { type FieldRow, fieldRows, typeText } from './fields.ts'
import { type Html, html, NOTHING } from './html.ts'
import type { Answer, JsonSchema, OpenApiDocument, Operation, Parameter } from './openapi.ts'
import { STYLE } from './style.ts'

interface Endpoint extends Operation {
  readonly method: string
  readonly path: string
}

const endpointsOf = (document: OpenApiDocument): Endpoint[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )

const table = (heads: readonly string[], rows: readonly Html[]): Html =>
  html`<div class="wide"><table><thead><tr>${heads.map((head) => html`<th>${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`

const requiredMark = (isRequired: boolean): Html =>
  isRequired ? html` <span class="needed">required</span>` : NOTHING

const row = ({ name, type, isRequired, description }: FieldRow): Html =>
  html`<tr><td><code>${name}</code>${requiredMark(isRequired)}</td><td>${type}</td><td>${description}</td></tr>`

function fields(heading: string, rows: readonly FieldRow[]): Html {
  return rows.length === 0 ? NOTHING : html`<h4>${heading}</h4>${table(['Field', 'Type', ''], rows.map(row))}`
}

const parameterRow = ({ name, schema, required, description = '' }: Parameter): FieldRow => ({
  name,
  type: typeText(schema),
  isRequired: required,
  description,
})

const HEADINGS = { path: 'In the path', query: 'In the query', header: 'Headers' } as const

function parameters({ parameters = [] }: Operation): Html[] {
  const places = ['path', 'query', 'header'] as const
  return places.map((place) =>
    fields(HEADINGS[place], parameters.filter((parameter) => parameter.in === place).map(parameterRow)),
  )
}

function resolved(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1)! : ''
  return document.components.schemas[name] ?? schema
}

function answer(document: OpenApiDocument, { content = {} }: Answer): Html[] {
  return Object.entries(content).map(([contentType, { schema }]) => {
    // What an answer holds nobody has to give.
    const rows = fieldRows(resolved(document, schema)).map((field) => ({ ...field, isRequired: false }))
    const says = typeof schema.description === 'string' ? schema.description : ''
    if (rows.length === 0) return html`<p><code>${contentType}</code> ${says}</p>`
    const body = table(['Field', 'Type', ''], rows.map(row))
    return html`<details><summary>Answer, <code>${contentType}</code></summary>${body}</details>`
  })
}

function refusals({ responses }: Operation): Html {
  const rows = Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .map(([status, { description }]) => html`<tr><td>${status}</td><td>${codes(description)}</td></tr>`)
  if (rows.length === 0) return NOTHING
  return html`<details><summary>Refusals</summary>${table(['Status', 'Code'], rows)}</details>`
}

/** Descriptions of refusals are codes between back ticks. */
const codes = (description: string): Html[] =>
  description.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))

/** What curl does not choose by itself. */
const OPTIONS: Readonly<Record<string, string>> = { POST: '-N ', DELETE: '-X DELETE ', HEAD: '-I ' }

function command({ method, path, security, requestBody }: Endpoint): Html {
  const example = requestBody?.content['application/json']?.example
  const shown = path.replace('{model}', 'sonata-large')
  const lines = [
    `curl ${OPTIONS[method] ?? ''}"$TOLLGATE_URL${shown}"`,
    ...(security.length > 0 ? [`  -H "authorization: Bearer $TOLLGATE_KEY"`] : []),
    ...(example ? ["  -H 'content-type: application/json'", `  -d '${JSON.stringify(example)}'`] : []),
  ]
  return html`<pre><code>${lines.join(' \\\n')}</code></pre>`
}

function section(document: OpenApiDocument, endpoint: Endpoint): Html {
  const { method, path, operationId, summary, description, requestBody, responses, security } = endpoint
  const body = requestBody?.content['application/json']?.schema
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 400)
  return html`<section id="${operationId}">
<h3><span class="method ${method.toLowerCase()}">${method}</span><code>${path}</code></h3>
<p>${summary}${security.length === 0 ? ' No key is needed.' : ''}</p>
${description === undefined ? NOTHING : html`<p class="soft">${description}</p>`}
${command(endpoint)}
${parameters(endpoint)}
${body === undefined ? NOTHING : fields('Body', fieldRows(resolved(document, body)))}
${successes.flatMap(([, success]) => answer(document, success))}
${refusals(endpoint)}
</section>`
}

/** A long path breaks behind its separators. */
const breakable = (path: string): Html[] => path.split(/(?<=[/:_])/).map((part) => html`${part}<wbr>`)

function navigation(document: OpenApiDocument, endpoints: readonly Endpoint[]): Html {
  const groups = document.tags.map(({ name }) => {
    const links = endpoints
      .filter(({ tags }) => tags.includes(name))
      .map(({ operationId, path }) => html`<li><a href="#${operationId}">${breakable(path)}</a></li>`)
    return html`<h2>${name}</h2><ul>${links}</ul>`
  })
  return html`<nav><strong>${document.info.title}</strong><span class="soft">${document.info.version}</span>
<h2>Reference</h2><ul><li><a href="#keys">Keys</a></li><li><a href="#errors">Errors</a></li><li><a href="/openapi.json">openapi.json</a></li></ul>
${groups}</nav>`
}

const KEYS = html`<section id="keys"><h3>Keys</h3>
<p>One key works everywhere. It is read from the first of these that is there: the header <code>x-api-key</code>,
the header <code>x-goog-api-key</code>, the query parameter <code>key</code>, the header
<code>authorization: Bearer</code>. The last is the advised form.</p></section>`

function errors(): Html {
  const rows = Object.entries(FAILURES).map(
    ([code, { status, type, messagesType, generateStatus }]) =>
      html`<tr><td>${status}</td><td><code>${code}</code></td><td>${type}</td><td>${messagesType}</td><td>${generateStatus}</td></tr>`,
  )
  return html`<section id="errors"><h3>Errors</h3>
<p>The body has the shape of the endpoint's protocol: <code>{error: {message, type, code}}</code>; for messages
<code>{type: "error", error: {type, message}}</code>; for generate-content
<code>{error: {code, message, status}}</code> with the HTTP status as the code. An error of the upstream keeps its
status.</p>
${table(['Status', 'Code', 'Type', 'Messages type', 'Generate-content status'], rows)}</section>`
}

export function printPage(document: OpenApiDocument): string {
  const endpoints = endpointsOf(document)
  const groups = document.tags.map(({ name }) => {
    const sections = endpoints.filter(({ tags }) => tags.includes(name)).map((one) => section(document, one))
    return html`<h2>${name}</h2>${sections}`
  })
  const { title, description } = document.info
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} reference</title>
<style>${STYLE}</style>
</head>
<body><div class="page">
${navigation(document, endpoints)}
<main><h1>${title} reference</h1><p>${description}</p>${KEYS}${errors()}${groups}</main>
</div></body>
</html>
`.text
}
