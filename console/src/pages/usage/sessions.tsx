/** The cost of each session of an account: one conversation, or one run of an agent. */

import { Link } from '@tanstack/react-router'
import { MessagesSquare } from 'lucide-react'
import { ROUTES } from '../../../../schemas/routes.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printNumber, toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import { EmptyState, Panel } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Money, Time } from '../../ui/text.tsx'
import { FirstCurl } from '../first-call/first-call.tsx'
import { type AccountReportProps, nameCsvColumns, SUM_COLUMNS, UsageFrame, usePeriod } from './frame.tsx'

type Usage = AnswerOf<'sumSessions'>
type Session = Usage['data'][number]

const toLines = ({ data }: Usage) => [
  ['session_id', 'models', ...nameCsvColumns(SUM_COLUMNS), 'first_call_at', 'last_call_at'],
  ...data.map((session) => [
    session.session_id,
    session.models.join(' '),
    ...SUM_COLUMNS.map((column) => session[column]),
    session.first_call_at,
    session.last_call_at,
  ]),
]

export function Sessions({ input, isReady, frame }: AccountReportProps) {
  const period = usePeriod()
  const usage = useGet('sumSessions', { ...input, ...toZoneWindow(period) } as never, { enabled: isReady })
  const { account_id: account, key_id } = input
  const columns: Column<Session>[] = [
    {
      name: t('Session'),
      cell: ({ session_id }) => (
        <Link
          to="/calls"
          search={{ account, key_id, ...period, session_id }}
          title={session_id}
          className="block max-w-40 truncate md:max-w-64 text-accent hover:underline"
        >
          {session_id}
        </Link>
      ),
    },
    { name: t('Model'), isText: true, cell: ({ models }) => models.join(', ') || '–' },
    { name: t('Calls'), isNumber: true, cell: ({ requests }) => printNumber(requests) },
    { name: t('Input tokens'), isNumber: true, cell: ({ input_tokens }) => printNumber(input_tokens) },
    { name: t('Cached'), isNumber: true, cell: ({ cached_tokens }) => printNumber(cached_tokens) },
    { name: t('Output tokens'), isNumber: true, cell: ({ output_tokens }) => printNumber(output_tokens) },
    { name: t('Cost'), isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
    { name: t('First call'), isTime: true, cell: ({ first_call_at }) => <Time at={first_call_at} /> },
    { name: t('Last call'), isTime: true, cell: ({ last_call_at }) => <Time at={last_call_at} /> },
  ]
  return (
    <UsageFrame by="session" {...frame} query={usage} toLines={toLines}>
      {({ data, has_more }) => (
        <>
          <Panel title={t('Sessions')}>
            {data.length === 0 ? (
              <EmptyState
                icon={MessagesSquare}
                title={t('No call in this period belongs to a session.')}
                docs="api-rules.md"
              >
                <FirstCurl
                  path={ROUTES.createChatCompletion[1]}
                  endpointType={null}
                  body={{ messages: [{ role: 'user', content: 'Hello!' }] }}
                  headers={['X-Session-Id: run 7']}
                />
              </EmptyState>
            ) : (
              <Table
                isAdjustable
                caption={t('Sessions')}
                columns={columns}
                rows={data}
                toKey={(row) => row.session_id}
              />
            )}
          </Panel>
          {has_more && (
            <p className="mt-3 text-quiet">
              {t('Only the {count} most expensive sessions are shown.', { count: printNumber(data.length) })}
            </p>
          )}
        </>
      )}
    </UsageFrame>
  )
}
