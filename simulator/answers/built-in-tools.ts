/** Results of the provider's own tools, web search and image generation, in no dialect. */

import { drawPng } from '../media/samples.ts'
import { drawTokens, drawWord, makeHexadecimalId, type Random } from './words.ts'

const QUERY_WORDS = 3
const SOURCES_PER_SEARCH = 2
const PROMPT_WORDS = 5
const SIDE_PIXELS = 8
const SEEDS = 2 ** 32
const SMALL_PICTURE = { widthPixels: SIDE_PIXELS, heightPixels: SIDE_PIXELS }

export type BuiltInTool = 'web_search' | 'image_generation'

export type Search = {
  /** 24 hexadecimal characters; dialects put their own prefix before it. */
  readonly id: string
  readonly query: string
  readonly sources: readonly Source[]
}

type Source = { readonly url: string; readonly title: string }

export type Picture = {
  readonly id: string
  readonly prompt: string
  /** A small PNG. */
  readonly base64: string
}

export function writeSearches(count: number, random: Random): Search[] {
  return Array.from({ length: count }, () => ({
    id: makeHexadecimalId(random),
    query: drawTokens(random, QUERY_WORDS).join(''),
    sources: Array.from({ length: SOURCES_PER_SEARCH }, (_, index) => ({
      url: `https://example.com/${makeHexadecimalId(random).slice(0, 8)}/${index + 1}`,
      title: `About ${drawWord(random)}`,
    })),
  }))
}

export function writePictures(count: number, random: Random): Picture[] {
  return Array.from({ length: count }, () => ({
    id: makeHexadecimalId(random),
    prompt: drawTokens(random, PROMPT_WORDS).join(''),
    base64: drawPng({ ...SMALL_PICTURE, seed: Math.floor(random() * SEEDS) }).toString('base64'),
  }))
}
