/**
 * The other models that a request of the messages protocol lets its upstream ask: `fallbacks`, which answer where the model
 * declines, and advisors, which it asks on the way. Each is billed at its own price. See docs/pricing.md, "Other models".
 */
import type { Buffer } from 'node:buffer'
import type { CountTokensRequest } from '../../../schemas/chat/messages.ts'
import { scanItems } from '../../core/json/scanner/tape.ts'
import { type FieldSpan, isSet, removal, type Splice } from '../../core/json/splice.ts'
import type { ChatCall, OtherModel } from '../dialect.ts'
import { type LooseObject, toFields, toList, toText } from '../loose.ts'
import { ADVISOR, isCount } from '../request/tools.ts'

const FAST = 'fast'
/** The first character of a list. */
const LIST = 0x5b
const NO_NAMES: ReadonlyMap<string, string> = new Map()

export const isAdvisor = (tool: unknown): boolean => ADVISOR.test(toText(toFields(tool).type))

const toOtherModel = (
  field: OtherModel['field'],
  { model, max_tokens: limit, max_uses: uses }: LooseObject,
) => ({
  field,
  name: toText(model),
  outputLimit: isCount(limit) ? limit : null,
  mostRuns: field === 'fallbacks' ? 1 : isCount(uses) ? uses : null,
})

/**
 * Returns the other models that a request names; nothing where it has no field for them. With a `speed` none is asked:
 * reports do not say which of the models had it.
 */
export function readOtherModels(request: CountTokensRequest): Pick<ChatCall, 'otherModels'> {
  const fallbacks = toList(request.fallbacks).map(toFields)
  const advisors = toList(request.tools).map(toFields).filter(isAdvisor)
  if (request.fallbacks == null && advisors.length === 0) return {}
  if ([request, ...fallbacks].some(({ speed }) => speed === FAST)) return { otherModels: [] }
  return {
    otherModels: [
      ...fallbacks.map((fallback) => toOtherModel('fallbacks', fallback)),
      ...advisors.map((advisor) => toOtherModel('advisor', advisor)),
    ],
  }
}

/** Returns the items as they were written, those of `isOther` with the upstream's name of their model, or left out without one. */
function writeItems(
  body: Buffer,
  { start, end }: FieldSpan,
  isOther: (item: LooseObject) => boolean,
  names: ReadonlyMap<string, string>,
): { readonly kept: readonly string[]; readonly isAnyLeftOut: boolean } {
  const items = scanItems(body.subarray(start, end)).map((item) => item.toString('utf8'))
  const kept = items.flatMap((text) => {
    const item = toFields(JSON.parse(text))
    if (!isOther(item)) return text
    const name = toText(item.model)
    const upstreamName = names.get(name)
    if (upstreamName === undefined) return []
    return upstreamName === name ? text : JSON.stringify({ ...item, model: upstreamName })
  })
  return { kept, isAnyLeftOut: kept.length < items.length }
}

/** A word such as `default`: the vendor chooses the models, and they may have no price. */
const NONE_KEPT = { kept: [], isAnyLeftOut: true }

/**
 * Returns how the fields change for an upstream, and the names of those that lose a model.
 * @param names the upstream's names of the models that it may ask, by the client's; no others are asked
 */
export function writeOtherModels(
  body: Buffer,
  fields: ReadonlyMap<string, FieldSpan>,
  names: ReadonlyMap<string, string> = NO_NAMES,
): { readonly splices: readonly Splice[]; readonly dropped: readonly string[] } {
  const splices: Splice[] = []
  const dropped: string[] = []
  const fallbacks = fields.get('fallbacks')
  if (isSet(body, fallbacks)) {
    const isList = body[fallbacks.start] === LIST
    const { kept, isAnyLeftOut } = isList ? writeItems(body, fallbacks, () => true, names) : NONE_KEPT
    if (isAnyLeftOut) dropped.push('fallbacks')
    splices.push(kept.length === 0 ? removal(body, fallbacks) : { ...fallbacks, text: `[${kept.join(',')}]` })
  }
  const tools = fields.get('tools')
  if (tools !== undefined && body[tools.start] === LIST) {
    const { kept, isAnyLeftOut } = writeItems(body, tools, isAdvisor, names)
    if (isAnyLeftOut) dropped.push('advisor')
    splices.push({ ...tools, text: `[${kept.join(',')}]` })
  }
  return { splices, dropped }
}
