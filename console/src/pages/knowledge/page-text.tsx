/** Renders the Markdown of a page. HTML in it is shown as text: nothing of it runs. */
import { findAndReplace } from 'mdast-util-find-and-replace'
import type { AnswerOf } from '../../api/client.ts'
import { MarkdownText } from '../../ui/markdown.tsx'
import { Anchor } from '../../ui/text.tsx'
import { PageLink } from './pages.tsx'

type Target = AnswerOf<'showPage'>['outgoing_links'][number]

interface PageTextProps {
  readonly body: string
  /** Names of the links, as the text has them. */
  readonly links: readonly string[]
  /** The page of each. */
  readonly targets: readonly Target[]
}

const TO_PAGE = '#page='
const WIKI_LINK = /\[\[([^[\]|#]+)(?:#[^[\]|]*)?(?:\|([^[\]]*))?\]\]/g

/** Turns `[[Title|shown]]` into a link to its page; it stays text if there is no such page. */
const linkWikiPages = (links: readonly string[], targets: readonly Target[]) => {
  const ids = new Map(links.map((name, place) => [name.trim(), targets[place]?.id ?? null]))
  return () => (tree: Parameters<typeof findAndReplace>[0]) =>
    findAndReplace(tree, [
      WIKI_LINK,
      (whole: string, name: string, shown?: string) => {
        const id = ids.get(name.trim())
        if (!id) return whole
        const value = shown?.trim() || name.trim()
        return { type: 'link' as const, url: `${TO_PAGE}${id}`, children: [{ type: 'text' as const, value }] }
      },
    ])
}

export const PageText = ({ body, links, targets }: PageTextProps) => (
  <MarkdownText
    text={body}
    plugins={[linkWikiPages(links, targets)]}
    components={{
      a({ href = '', children }) {
        if (href.startsWith(TO_PAGE))
          return <PageLink id={href.slice(TO_PAGE.length)} title={String(children)} />
        return (
          <Anchor href={href} target="_blank" rel="noreferrer" isAmongWords>
            {children}
          </Anchor>
        )
      },
    }}
  />
)
