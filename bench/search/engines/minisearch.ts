/** The library MiniSearch, with all pages in the bench's memory. */
import MiniSearch from 'minisearch'
import type { BenchPage } from '../corpus/entry.ts'
import { DEPTH } from '../report/metrics.ts'
import type { Subject } from './engine.ts'

/** The same field weights as Tollgate's search. */
const BOOSTS = { title: 9, aliases: 6, tags: 4, summary: 3, text: 1 }
const FUZZY = 0.2

const segmenter = new Intl.Segmenter('zh', { granularity: 'word' })
const segmented = (text: string): string[] => {
  const words: string[] = []
  for (const { segment, isWordLike } of segmenter.segment(text)) if (isWordLike) words.push(segment)
  return words
}

/** `icu` splits words with Intl.Segmenter; otherwise the library's default splits at spaces and punctuation. */
export function minisearch(tokenizer: 'default' | 'icu'): Subject {
  const index = new MiniSearch<Record<string, string>>({
    idField: 'key',
    fields: Object.keys(BOOSTS),
    ...(tokenizer === 'icu' && { tokenize: segmented }),
  })
  const toDocument = ({ key, title, aliases, tags, summary, text }: BenchPage) => ({
    key,
    title,
    aliases: aliases.join('\n'),
    tags: tags.join('\n'),
    summary,
    text,
  })
  return {
    name: `minisearch-${tokenizer}`,
    title: tokenizer === 'icu' ? 'MiniSearch, ICU words' : 'MiniSearch',
    build: async (pages) => {
      await index.addAllAsync(pages.map(toDocument))
    },
    search: async (query) =>
      index
        .search(query, { boost: BOOSTS, fuzzy: FUZZY, prefix: true })
        .slice(0, DEPTH)
        .map(({ id }) => String(id)),
    indexBytes: async () => null,
  }
}
