/** The part of a long text that a search was answered with: the stretch with the most different hits in it. */

import { unescapeHtml } from '../html-text.ts'
import { excerpt } from './excerpt.ts'

/** Hits of each word, up to this many. */
const MAX_HITS_PER_WORD = 1_000
const MAX_WORDS = 32
const ELLIPSIS = '…'

/** Returns the marked words of a search result's snippet, in lower case, each once. */
export function listMarkedWords(snippet: string): string[] {
  const marked = [...snippet.matchAll(/<mark>(.*?)<\/mark>/gs)].map(([, inner = '']) => unescapeHtml(inner))
  return [...new Set(marked.map((word) => word.trim().toLowerCase()))].filter(Boolean).slice(0, MAX_WORDS)
}

interface Hit {
  readonly at: number
  readonly word: number
}

function hitsIn(text: string, words: readonly string[]): Hit[] {
  const lower = text.toLowerCase()
  const hits = words.flatMap((word, index) => {
    const found: Hit[] = []
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
      if (found.length === MAX_HITS_PER_WORD) break
      found.push({ at, word: index })
    }
    return found
  })
  return hits.sort((a, b) => a.at - b.at)
}

/** Returns the beginnings of lines and sentences. */
const starts = (text: string): number[] => [
  0,
  ...[...text.matchAll(/[\n。！？]|[.!?]\s/g)].map(({ index, 0: end }) => index + end.length),
]

/**
 * Returns the beginning from which `length` characters have the most different words. Of several adjacent ones returns
 * the middle: the words then have text on both sides. The text's own beginning takes precedence.
 */
function bestStart(text: string, words: readonly string[], length: number): number {
  const hits = hitsIn(text, words)
  const counts = new Array<number>(words.length).fill(0)
  let [different, first, end, most] = [0, 0, 0, -1]
  let best: number[] = []
  let isOpen = false
  for (const start of starts(text)) {
    for (; end < hits.length && hits[end]!.at < start + length; end++)
      if (counts[hits[end]!.word]!++ === 0) different++
    for (; first < end && hits[first]!.at < start; first++)
      if (--counts[hits[first]!.word]! === 0) different--
    if (different > most) {
      most = different
      best = [start]
      isOpen = true
    } else if (isOpen && different === most) best.push(start)
    else isOpen = false
  }
  return best[0] === 0 ? 0 : best[best.length >> 1]!
}

/** Returns at most `maxChars` Unicode characters of the text, with a mark at each cut. */
export function aroundHits(text: string, words: readonly string[], maxChars: number): string {
  if (!excerpt(text, maxChars).isCut) return text
  const length = Math.max(0, maxChars - 2 * ELLIPSIS.length)
  const start = bestStart(text, words, length)
  const part = excerpt(text.slice(start), length)
  return `${start > 0 ? ELLIPSIS : ''}${part.text}${part.isCut ? ELLIPSIS : ''}`
}
