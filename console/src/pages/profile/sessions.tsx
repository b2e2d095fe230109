/** Where the user is signed in. */

import { useMutation } from '@tanstack/react-query'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Badge, ErrorState, Panel, QueryState } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Code, Time } from '../../ui/text.tsx'

/** Returns the browser and the operating system in a `User-Agent`, if it knows them. */
function describeDevice(userAgent: string): string {
  const [, browser] = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(userAgent) ?? []
  const [, system] = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(userAgent) ?? []
  const name = { Edg: 'Edge', OPR: 'Opera' }[browser ?? ''] ?? browser
  return [name, system].filter(Boolean).join(', ') || userAgent || '–'
}

export function Sessions() {
  const list = useGet('listSessions', {})
  const changes = ['/me/sessions'] as const
  const end = useMutation({
    meta: { done: t('Session ended'), changes },
    mutationFn: (id: string) => request('endSession', { id }),
  })
  const endOthers = useMutation({
    meta: { done: t('Other sessions ended'), changes },
    mutationFn: () => request('endOtherSessions', {}),
  })
  return (
    <Panel title={t('Sessions')}>
      <QueryState query={list} rows={2} />
      <ErrorState error={end.error ?? endOthers.error} />
      {list.data && (
        <Table
          caption={t('Sessions')}
          rows={list.data.data}
          columns={[
            {
              name: t('Device'),
              cell: ({ user_agent, is_current }) => (
                <span className="flex items-center gap-2" title={user_agent}>
                  {describeDevice(user_agent)}
                  {is_current && <Badge tone="accent">{t('This session')}</Badge>}
                </span>
              ),
            },
            {
              name: t('Address'),
              cell: ({ address }) => <Code>{address}</Code>,
            },
            { name: t('Signed in'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
            { name: t('Last seen'), isTime: true, cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
            {
              name: t('Actions'),
              cell: ({ id, is_current }) =>
                !is_current && (
                  <Button kind="quiet" onClick={() => end.mutate(id)}>
                    {t('End')}
                  </Button>
                ),
            },
          ]}
        />
      )}
      {(list.data?.data.length ?? 0) > 1 && (
        <div className="border-line border-t p-3">
          <Button isBusy={endOthers.isPending} onClick={() => endOthers.mutate()}>
            {t('End all other sessions')}
          </Button>
        </div>
      )}
    </Panel>
  )
}
