/** The imports of a knowledge base: the one that runs, and the reports of the last ones. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { isOfBases } from '../../api/bases.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { JobProgress } from '../../ui/job-progress.tsx'
import { Badge, ErrorState, Panel, QueryState } from '../../ui/states.tsx'
import { Code, Time } from '../../ui/text.tsx'

type Import = AnswerOf<'listImports'>['data'][number]
type Report = NonNullable<Import['report']>

const SHOWN_IMPORTS = 10

const isOpen = ({ ended_at }: Import): boolean => ended_at === null

const stateNames = (): Readonly<Record<Import['state'], string>> => ({
  queued: t('Waiting'),
  running: t('Running'),
  done: t('Done'),
  failed: t('Failed'),
  cancelled: t('Cancelled'),
})

const TONES = {
  queued: 'neutral',
  running: 'accent',
  done: 'good',
  failed: 'bad',
  cancelled: 'neutral',
} as const

export function Imports({ baseId, mayChange }: { readonly baseId: string; readonly mayChange: boolean }) {
  const queries = useQueryClient()
  const imports = useGet('listImports', { id: baseId, limit: SHOWN_IMPORTS })
  const ended = imports.data?.data.filter((one) => !isOpen(one)).length ?? 0
  useEffect(() => {
    // The import has changed the pages and their number.
    if (ended > 0) void queries.invalidateQueries({ predicate: isOfBases })
  }, [ended, queries])
  const cancel = useMutation({
    mutationFn: (id: string) => request('cancelImport', { id: baseId, import_id: id }),
    onSettled: () => imports.refetch(),
  })
  const rows = imports.data?.data ?? []
  return (
    <Panel title={t('Imports')}>
      <QueryState query={imports} rows={2} />
      <ErrorState error={cancel.error} />
      {imports.data && rows.length === 0 && (
        <p className="px-4 py-3 text-quiet">
          {t('Nothing has been uploaded yet. Imports by the command tollgate kb import are not listed here.')}
        </p>
      )}
      <ol className="divide-y divide-line">
        {rows.map((one) => (
          <li key={one.id} className="px-4 py-3">
            <div className="flex flex-wrap items-center gap-3">
              <Badge tone={TONES[one.state]}>{stateNames()[one.state]}</Badge>
              <Time at={one.created_at} />
              <span className="min-w-0 truncate text-quiet">{one.files.slice(0, 3).join(', ')}</span>
              {one.files.length > 3 && (
                <span className="text-quiet">{t('and {count} more', { count: one.files.length - 3 })}</span>
              )}
              {isOpen(one) && mayChange && (
                <Button className="ml-auto" isBusy={cancel.isPending} onClick={() => cancel.mutate(one.id)}>
                  {t('Cancel')}
                </Button>
              )}
            </div>
            {isOpen(one) && <JobProgress done={one.done} total={one.total} />}
            {one.error && <p className="mt-1 text-bad">{one.error}</p>}
            {one.problems.length > 0 && <Problems problems={one.problems} />}
            {one.report && <ReportText report={one.report} />}
          </li>
        ))}
      </ol>
    </Panel>
  )
}

const Problems = ({ problems }: Pick<Import, 'problems'>) => (
  <ul className="mt-1 max-h-80 overflow-y-auto text-sm">
    {problems.map(({ file, line, message }) => (
      <li key={`${file}:${line}:${message}`} className="py-0.5">
        <Code>
          {file}:{line}
        </Code>{' '}
        {message}
      </li>
    ))}
  </ul>
)

function ReportText({ report }: { readonly report: Report }) {
  const { pages, added, changed, unchanged, gone, pruned } = report
  const { unresolved_links: unresolved, same_titles: same, ignored_fields: ignored } = report
  return (
    <div className="mt-1 text-sm">
      <p className="tabular">
        {t(
          '{added} added, {changed} changed, {unchanged} unchanged, {pages, plural, one {# page} other {# pages}} in all',
          {
            added,
            changed,
            unchanged,
            pages,
          },
        )}
      </p>
      {gone > 0 && (
        <Found
          what={
            pruned
              ? t(
                  '{count, plural, one {# page without a file was removed} other {# pages without a file were removed}}',
                  { count: gone },
                )
              : t(
                  '{count, plural, one {# page without a file was kept} other {# pages without a file were kept}}',
                  { count: gone },
                )
          }
          entries={report.gone_paths}
        />
      )}
      {unresolved.count > 0 && (
        <Found
          what={t('{count, plural, one {# link leads to no page} other {# links lead to no page}}', {
            count: unresolved.count,
          })}
          entries={unresolved.first.map(({ path, link }) => `${path}: [[${link}]]`)}
        />
      )}
      {same.count > 0 && (
        <Found
          what={t(
            '{count, plural, one {# title is shared by several pages; links lead to the first} other {# titles are shared by several pages; links lead to the first}}',
            { count: same.count },
          )}
          entries={same.first.map(({ title, paths }) => `${title}: ${paths.join(', ')}`)}
        />
      )}
      {Object.keys(ignored).length > 0 && (
        <Found
          what={t(
            '{count, plural, one {# front matter field is ignored} other {# front matter fields are ignored}}',
            { count: Object.keys(ignored).length },
          )}
          entries={Object.entries(ignored).map(([name, files]) => `${name}: ${files}`)}
        />
      )}
    </div>
  )
}

const Found = ({ what, entries }: { readonly what: string; readonly entries: readonly string[] }) => (
  <details className="mt-1">
    <summary className="text-warn">{what}</summary>
    <ul className="max-h-60 overflow-y-auto pl-4">
      {entries.map((entry) => (
        <li key={entry}>
          <code className="break-all font-mono text-xs">{entry}</code>
        </li>
      ))}
    </ul>
  </details>
)
