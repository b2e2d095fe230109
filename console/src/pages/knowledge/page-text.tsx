/** Renders the Markdown of a page. HTML in it is shown as text: nothing of it runs. */
import { findAndReplace } from 'mdast-util-find-and-replace'
import Markdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import type { AnswerOf } from '../../api/client.ts'
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

const COMPONENTS: Components = {
  a({ href = '', children }) {
    if (href.startsWith(TO_PAGE)) return <PageLink id={href.slice(TO_PAGE.length)} title={String(children)} />
    return (
      <a href={href} target="_blank" rel="noreferrer" className="text-accent underline">
        {children}
      </a>
    )
  },
  // The console loads nothing from other hosts.
  img: ({ alt = '', src }) => (
    <a href={String(src)} target="_blank" rel="noreferrer" className="text-accent underline">
      {alt || String(src)}
    </a>
  ),
}

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
  <div className="markdown">
    <Markdown remarkPlugins={[remarkGfm, linkWikiPages(links, targets)]} components={COMPONENTS}>
      {body}
    </Markdown>
  </div>
)
