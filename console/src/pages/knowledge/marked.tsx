/** A snippet of a search result with its matches marked. */
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

/** Shows the snippet as text: the service escapes all of it except its marks. */
export const Marked = ({ snippet }: { readonly snippet: string }) => {
  // The pattern has a group, so every other part is a match.
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
