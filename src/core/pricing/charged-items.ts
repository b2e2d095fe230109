/**
 * Lists what a usage is charged for, item by item: the charge is the sum of the items, and the call log shows them. A
 * token is in one item only.
 */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import type { Rate } from '../../../schemas/money.ts'
import type { PriceTerms } from './terms.ts'
import { NO_EXTRA, type TokenUsage } from './usage.ts'

export interface ChargedItem {
  /** Such as `output_audio`; the tool's name for tools that have a separate price. */
  readonly name: string
  readonly count: number
  readonly price: Rate
  readonly per: 'million' | 'each'
}

/** Returns the items whose count is not 0. */
export function listChargedItems(usage: TokenUsage, terms: PriceTerms): ChargedItem[] {
  const { cached, cacheWrite, extra = NO_EXTRA } = usage
  const fresh = new Share(Math.max(0, usage.prompt - cached - cacheWrite))
  const inputAudio = fresh.take(extra.inputAudio)
  const inputImage = fresh.take(extra.inputImage)
  const written = new Share(cacheWrite)
  const cacheWrite1h = written.take(extra.cacheWrite1h)
  const output = new Share(usage.output)
  const outputAudio = output.take(extra.outputAudio)
  const outputImage = output.take(extra.outputImage)
  const reasoning = terms.reasoning === terms.output ? 0 : output.take(usage.reasoning)
  const tokens: readonly (readonly [name: string, count: number, price: Rate])[] = [
    ['input', fresh.left, terms.input],
    ['input_audio', inputAudio, terms.inputAudio],
    ['input_image', inputImage, terms.inputImage],
    ['cached_input', cached, terms.cached],
    ['cache_write', written.left, terms.cacheWrite],
    ['cache_write_1h', cacheWrite1h, terms.cacheWrite1h],
    ['output', output.left, terms.output],
    ['reasoning', reasoning, terms.reasoning],
    ['output_audio', outputAudio, terms.outputAudio],
    ['output_image', outputImage, terms.outputImage],
  ]
  return [
    ...tokens.map(([name, count, price]): ChargedItem => ({ name, count, price, per: 'million' })),
    ...listToolItems(usage.serverToolCalls, extra.tools, terms),
  ].filter(({ count }) => count > 0)
}

/** A count from which parts are taken, never more than is left. */
class Share {
  left: number

  constructor(count: number) {
    this.left = count
  }

  take(wanted: number): number {
    const taken = Math.min(this.left, wanted)
    this.left -= taken
    return taken
  }
}

/** Returns the tools that have a separate price, then all other calls. */
function listToolItems(
  calls: number,
  byTool: Readonly<Partial<Record<ServerTool, number>>>,
  { serverTools, serverToolCall }: PriceTerms,
): ChargedItem[] {
  const rest = new Share(calls)
  const own = Object.entries(serverTools).map(
    ([name, price]): ChargedItem => ({
      name,
      count: rest.take(byTool[name as ServerTool] ?? 0),
      price,
      per: 'each',
    }),
  )
  return [...own, { name: 'built_in_tools', count: rest.left, price: serverToolCall, per: 'each' }]
}
