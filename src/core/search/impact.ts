/**
 * Weighs the terms of a page: BM25F (Robertson, Zaragoza, Taylor 2004), with fixed reference lengths, so that a page's
 * figures never change because another page was added.
 */
import { nameTerm, splitTerms } from './terms.ts'

/** The searchable parts of a page. */
export interface SearchableText {
  readonly title: string
  readonly aliases: readonly string[]
  readonly tags: readonly string[]
  readonly summary: string
  readonly text: string
}

/** Impacts are whole numbers from 1 to this. */
export const MAX_IMPACT = 1023

interface Field {
  readonly weight: number
  /** The influence of length: 0 none, 1 full. */
  readonly lengthPart: number
  /** In words: a field of this length is neither long nor short. */
  readonly typicalWords: number
}

const FIELDS = {
  title: { weight: 9, lengthPart: 0.4, typicalWords: 3 },
  aliases: { weight: 6, lengthPart: 0.3, typicalWords: 4 },
  tags: { weight: 4, lengthPart: 0.3, typicalWords: 4 },
  summary: { weight: 3, lengthPart: 0.5, typicalWords: 20 },
  text: { weight: 1, lengthPart: 0.6, typicalWords: 200 },
} satisfies Record<keyof SearchableText, Field>
/** The sum of weighted counts at which a term has half of the highest impact. */
const HALF_SATURATION = 4
const TITLE_NAME_IMPACT = MAX_IMPACT
const ALIAS_NAME_IMPACT = Math.round(MAX_IMPACT * 0.9)

/** Returns every term of the page with its impact. */
export function pageImpacts(page: SearchableText): Map<string, number> {
  const weights = new Map<string, number>()
  addField(weights, FIELDS.title, page.title)
  addField(weights, FIELDS.aliases, page.aliases.join('\n'))
  addField(weights, FIELDS.tags, page.tags.join('\n'))
  addField(weights, FIELDS.summary, page.summary)
  addField(weights, FIELDS.text, page.text)
  const impacts = new Map<string, number>()
  for (const [term, weight] of weights)
    impacts.set(term, Math.max(1, Math.round((MAX_IMPACT * weight) / (weight + HALF_SATURATION))))
  for (const alias of page.aliases) setName(impacts, alias, ALIAS_NAME_IMPACT)
  setName(impacts, page.title, TITLE_NAME_IMPACT)
  return impacts
}

function addField(weights: Map<string, number>, field: Field, text: string): void {
  if (text === '') return
  const counts = new Map<string, number>()
  let words = 0
  for (const { text: term, kind } of splitTerms(text)) {
    counts.set(term, (counts.get(term) ?? 0) + 1)
    if (kind === 'word') words++
  }
  const share = field.weight / (1 - field.lengthPart + field.lengthPart * (words / field.typicalWords))
  for (const [term, count] of counts) weights.set(term, (weights.get(term) ?? 0) + count * share)
}

function setName(impacts: Map<string, number>, name: string, impact: number): void {
  const term = nameTerm(name)
  if (term !== null) impacts.set(term, impact)
}
