/** The pages of a knowledge base: all of them by path, or the results of a search. */
import { Fragment } from 'react'
import type { AnswerOf } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { OpenLink } from '../../ui/open-link.tsx'
import { Badge, EmptyState, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Code, Time } from '../../ui/text.tsx'

type Page = AnswerOf<'listPages'>['data'][number]

export const PageLink = ({ id, title }: Pick<Page, 'id' | 'title'>) => (
  <OpenLink search={{ page: id }}>{title}</OpenLink>
)

export const Tags = ({ tags }: Pick<Page, 'tags'>) => (
  <span className="inline-flex flex-wrap gap-1">
    {tags.map((tag) => (
      <Badge key={tag}>{tag}</Badge>
    ))}
  </span>
)

export function PageList({ baseId }: { readonly baseId: string }) {
  const { account_id } = useAccount()
  const pages = useList('listPages', { id: baseId, account_id })
  const columns: Column<Page>[] = [
    { name: t('Page'), cell: (page) => <PageLink {...page} /> },
    { name: t('Path'), cell: ({ path }) => <Code>{path}</Code> },
    { name: t('Tags'), cell: (page) => <Tags {...page} /> },
    { name: t('Changed'), isTime: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  return (
    <ListPanel
      title={t('Pages')}
      list={pages}
      columns={columns}
      empty={t('There are no pages yet. Upload a folder of Markdown files.')}
    />
  )
}

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
const Marked = ({ snippet }: { readonly snippet: string }) => {
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

export function FoundPages({ baseId, query }: { readonly baseId: string; readonly query: string }) {
  const { account_id } = useAccount()
  const found = useGet('searchPages', { id: baseId, account_id, q: query })
  const count = found.data?.total_hits ?? 0
  return (
    <Panel
      title={
        found.data ? t('{count, plural, one {# page found} other {# pages found}}', { count }) : t('Search')
      }
    >
      <QueryState query={found} />
      {found.data && count === 0 && <EmptyState title={t('No pages contain these words.')} />}
      <ol className="divide-y divide-line">
        {found.data?.results.map((page) => (
          <li key={page.id} className="px-4 py-3">
            <PageLink {...page} /> <Tags {...page} />
            <p className="mt-1 max-w-prose break-words text-quiet">
              <Marked snippet={page.snippet} />
            </p>
          </li>
        ))}
      </ol>
    </Panel>
  )
}
