/** A snippet of a search, whose hits are marked. */
import { Fragment } from 'react'

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}
const MARKED = /<mark>(.*?)<\/mark>/s

const unescapeText = (escaped: string): string =>
  escaped.replace(/&(?:amp|lt|gt|quot|#39);/g, (name) => ENTITIES[name]!)

/** Shows the text as text: the service escapes all of it but its marks. */
export const Marked = ({ snippet }: { readonly snippet: string }) => {
  // By a pattern with a group, every other part is a hit.
  const parts = snippet.split(MARKED).map((part, place) => ({ part: unescapeText(part), place }))
  return parts.map(({ part, place }) =>
    place % 2 === 1 ? (
      <mark key={place} className="rounded bg-warn-wash px-0.5 text-ink">
        {part}
      </mark>
    ) : (
      <Fragment key={place}>{part}</Fragment>
    ),
  )
}
