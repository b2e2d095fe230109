/** One page of a knowledge base, rendered, with the pages that link to it. */
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { Badge, Fact, Panel, QueryState } from '../../ui/states.tsx'
import { Id } from '../../ui/text.tsx'
import { PageText } from './page-text.tsx'
import { PageLink, Tags } from './pages.tsx'

interface PageDrawerProps {
  readonly baseId: string
  /** Undefined while the drawer is closed. */
  readonly pageId: string | undefined
}

export function PageDrawer({ baseId, pageId }: PageDrawerProps) {
  const { account_id } = useAccount()
  const change = useChangeSearch()
  const page = useGet(
    'showPage',
    { id: baseId, account_id, page_id: pageId! },
    { enabled: pageId !== undefined },
  )
  return (
    <Drawer
      title={page.data?.title ?? t('Page')}
      isOpen={pageId !== undefined}
      onClose={() => change({ page: undefined })}
    >
      <QueryState query={page} />
      {page.data && <Page page={page.data} />}
    </Drawer>
  )
}

function Page({ page }: { readonly page: AnswerOf<'showPage'> }) {
  const { id, summary, tags, aliases, confidence, needs_review, source, body, backlinks } = page
  return (
    <>
      {summary !== '' && <p className="text-quiet">{summary}</p>}
      <Panel>
        <div className="p-4">
          <PageText body={body} links={page.links} targets={page.outgoing_links} />
        </div>
      </Panel>
      <Panel title={t('Linked from')}>
        {backlinks.length === 0 ? (
          <p className="px-4 py-3 text-quiet">{t('No page links here.')}</p>
        ) : (
          <ul className="px-4 py-2">
            {backlinks.map((linking) => (
              <li key={linking.id} className="py-0.5">
                <PageLink {...linking} />
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <dl className="rounded-lg border border-line bg-surface py-2">
        <Fact name={t('Id')} value={<Id id={id} />} />
        {tags.length > 0 && <Fact name={t('Tags')} value={<Tags tags={tags} />} />}
        {aliases.length > 0 && <Fact name={t('Other names')} value={aliases.join(', ')} />}
        {confidence !== '' && <Fact name={t('Confidence')} value={confidence} />}
        {needs_review && <Fact name={t('Review')} value={<Badge tone="warn">{t('Needed')}</Badge>} />}
        {source && (
          <Fact name={t('Source')} value={[source.filename, source.locator].filter(Boolean).join(', ')} />
        )}
      </dl>
    </>
  )
}
