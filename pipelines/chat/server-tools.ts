/**
 * Tools that run at the upstream: the callers that may request them, and the channels that have them. See
 * docs/api-rules.md, "Built-in tools".
 */
import { Buffer } from 'node:buffer'
import type { ServerTool } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Route } from '../../src/core/routing/catalog.ts'
import type { Stage } from '../calls/pipeline.ts'
import type { PricedCall } from './select-model.ts'

/** A translation leaves this one out, with a warning. */
const DROPPED_IN_TRANSLATION: ServerTool = 'image_generation'
/** The one tool that a translation can express. */
const TRANSLATED: ServerTool = 'web_search'

const notSupported = (tool: ServerTool, modelId: string): Failure =>
  new Failure('tool_not_supported', `The tool '${tool}' is not supported for the model '${modelId}'.`)

function supports({ channel, isTranslated }: Route, tool: ServerTool): boolean {
  if (isTranslated && tool === DROPPED_IN_TRANSLATION) return true
  return channel.tools.includes(tool) && (!isTranslated || tool === TRANSLATED)
}

/**
 * Keeps the routes that have the server tools of the call.
 * @throws Failure `invalid_request`, `tool_not_supported`
 */
export const requireServerTools =
  <C extends PricedCall>(): Stage<C, C> =>
  (priced: C) => {
    const { call, model, protocol, routes } = priced
    const tools = call.builtInTools
    if (tools.length === 0) return priced
    // Before what the model supports: this rule is the first of the interface's list.
    if (protocol === 'chat-completions' && !call.stream)
      throw new Failure(
        'invalid_request',
        `The tool '${tools[0]}' works in streams only: set 'stream' to true.`,
      )
    const missing = tools.find((tool) => !model.entry.capabilities[tool])
    if (missing !== undefined) throw notSupported(missing, model.id)
    const fit = fittingRoutes(routes, tools)
    if (fit.length === 0) throw notSupported(tools[0]!, model.id)
    const fallbacks = priced.fallbacks
      .filter((other) => tools.every((tool) => other.model.entry.capabilities[tool]))
      .map((other) => ({ ...other, routes: fittingRoutes(other.routes, tools) }))
      .filter((other) => other.routes.length > 0)
    return { ...priced, routes: fit, fallbacks }
  }

const fittingRoutes = (routes: readonly Route[], tools: readonly ServerTool[]): readonly Route[] =>
  routes.filter((route) => tools.every((tool) => supports(route, tool)))

/**
 * On the path of built-in tools alone, a broken stream ends with an error event. The empty line ends an event that
 * broke off. See docs/api-rules.md, "Streams".
 */
const BROKEN_TOOL_STREAM = Buffer.from(
  `\n\ndata: ${JSON.stringify({ error: { message: 'The upstream failed.', type: 'api_error', code: 'upstream_error' } })}\n\ndata: [DONE]\n\n`,
)

/** Returns the last bytes of a stream that broke; null where it just ends. */
export const noticeOfBreak = ({ call, protocol }: PricedCall): Buffer | null =>
  call.builtInTools.length > 0 && protocol === 'chat-completions' ? BROKEN_TOOL_STREAM : null
