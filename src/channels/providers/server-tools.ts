/**
 * Fills in the tools that a preset's vendor runs: the channel offers them, its models are capable of them, and they have the
 * vendor's price. See docs/providers.md, "Tools of the vendor".
 */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { divideHalfUp, ONE_RATE, parseRate, printRate, type Rate } from '../../../schemas/money.ts'
import type { ChannelFields, Fields, VendorTools } from './provider.ts'

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const toFields = (value: unknown): Fields => (isFields(value) ? value : {})
const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function parseRateOrNull(value: unknown): Rate | null {
  try {
    return parseRate(String(value))
  } catch {
    return null
  }
}

/** Returns what a US dollar is worth in credits: as the file says, or as its payments in dollars do; null if unknown. */
function findCreditsPerDollar({ credits_per_dollar: own, payments }: Fields): Rate | null {
  const { currency, credits_per_unit: unit } = toFields(payments)
  return parseRateOrNull(own ?? (currency === 'usd' ? unit : undefined))
}

const hasOwnPrice = ({ server_tool_call: any, server_tools: own }: Fields, tool: string): boolean =>
  any !== undefined || Object.hasOwn(toFields(own), tool)

type Prices = Readonly<Partial<Record<ServerTool, Rate>>>

/** Returns prices by tokens with those of tools that have none; free tools need none. */
function fillPrices(pricing: unknown, prices: Prices): unknown {
  if (!isFields(pricing)) return pricing
  const missing = Object.entries(prices).filter(([tool, price]) => price > 0n && !hasOwnPrice(pricing, tool))
  const filled = Object.fromEntries(missing.map(([tool, price]) => [tool, printRate(price)]))
  return {
    ...pricing,
    ...(missing.length > 0 && { server_tools: { ...filled, ...toFields(pricing.server_tools) } }),
    ...(Array.isArray(pricing.changes) && {
      changes: pricing.changes.map((change) => fillPrices(change, prices)),
    }),
  }
}

/** The vendor's tools of a channel that leaves `tools` out. */
interface Offer {
  readonly isFree: boolean
  readonly tool: ServerTool
  /** In credits; null while a dollar has no price. */
  readonly price: Rate | null
}

const listOffers = (tools: VendorTools, perDollar: Rate | null): Offer[] =>
  (Object.entries(tools) as [ServerTool, string][]).map(([tool, dollars]) => ({
    tool,
    isFree: Number(dollars) === 0,
    price: perDollar === null ? null : divideHalfUp(parseRate(dollars) * perDollar, ONE_RATE),
  }))

/**
 * Returns the file with the vendors' tools filled in.
 * @param findTools returns the vendor's tools of a channel; undefined for a channel that gets none
 */
export function fillServerTools(
  file: Fields,
  findTools: (channel: ChannelFields) => VendorTools | undefined,
): Fields {
  const perDollar = findCreditsPerDollar(file)
  const models = toList(file.models)
  const pricingById = new Map(models.filter(isFields).map(({ id, pricing }) => [id, toFields(pricing)]))
  /** By model, the highest price of each tool that a channel of it offers. */
  const offered = new Map<string, Partial<Record<ServerTool, Rate>>>()
  const channels = toList(file.channels).map((channel) => {
    const tools = isFields(channel) ? findTools(channel) : undefined
    if (!isFields(channel) || tools === undefined) return channel
    const served = Object.keys(toFields(channel.models))
    const isPriced = ({ tool, isFree, price }: Offer): boolean =>
      isFree || price !== null || served.every((id) => hasOwnPrice(pricingById.get(id) ?? {}, tool))
    const offers = listOffers(tools, perDollar).filter(isPriced)
    for (const id of served)
      for (const { tool, price } of offers) {
        const prices = offered.get(id) ?? {}
        const before = prices[tool] ?? 0n
        prices[tool] = price !== null && price > before ? price : before
        offered.set(id, prices)
      }
    const paid = Object.fromEntries(offers.map(({ tool, price }) => [tool, price ?? 0n]))
    const cost = Object.entries(toFields(channel.cost)).map(([id, own]) => [id, fillPrices(own, paid)])
    return {
      ...channel,
      tools: offers.map(({ tool }) => tool),
      ...(cost.length > 0 && { cost: Object.fromEntries(cost) }),
    }
  })
  const filledModels = models.map((model) => {
    const prices = isFields(model) ? offered.get(String(model.id)) : undefined
    if (!isFields(model) || prices === undefined) return model
    const able = Object.fromEntries(Object.keys(prices).map((tool) => [tool, true]))
    return {
      ...model,
      capabilities: { ...able, ...toFields(model.capabilities) },
      ...(model.pricing !== undefined && { pricing: fillPrices(model.pricing, prices) }),
    }
  })
  return { ...file, channels, ...(Array.isArray(file.models) && { models: filledModels }) }
}
