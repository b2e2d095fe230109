/** Entries of a wallet, the newest first. */
import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../api/client.ts'
import type { useList } from '../api/read.ts'
import { t } from '../i18n.ts'
import { EmptyState } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Id, Money, Time } from '../ui/text.tsx'

type Entry = AnswerOf<'listLedger'>['data'][number]

/** Returns the name of the kind of an entry, in the language of the page. */
function kindName({ kind, ref }: Entry): string {
  const names: Readonly<Record<Entry['kind'], string>> = {
    charge: t('Charge'),
    topup: t('Top-up'),
    trial: t('Trial credit'),
    // One that names a call or task gives its charge back.
    adjustment: ref === null ? t('Adjustment') : t('Refund'),
    reversal: t('Card payment taken back'),
    refund: t('Refund'),
    hold: t('Hold'),
    release: t('Release'),
  }
  return names[kind]
}

export function LedgerTable({ list }: { readonly list: ReturnType<typeof useList<'listLedger'>> }) {
  const columns: Column<Entry>[] = [
    { name: t('Time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Kind'), cell: kindName },
    { name: t('Credits'), isNumber: true, cell: ({ amount }) => <Money amount={amount} /> },
    {
      name: t('Call or task'),
      cell: ({ ref, account_id: account }) =>
        ref !== null && (
          <span className="inline-flex items-center gap-2">
            <Id id={ref} />
            <Link
              to="/calls"
              search={{ account, ref, period: 'all' }}
              className="text-accent hover:underline"
            >
              {t('Show')}
            </Link>
            {!ref.startsWith('req_') && (
              <Link to="/tasks" search={{ account, task: ref }} className="text-accent hover:underline">
                {t('Task')}
              </Link>
            )}
          </span>
        ),
    },
    { name: t('Note'), cell: ({ note, reference }) => note ?? reference ?? '–' },
  ]
  return (
    <ListPanel
      title={t('Ledger')}
      caption={t('Ledger')}
      list={list}
      columns={columns}
      keyOf={({ id }) => String(id)}
      empty={<EmptyState title={t('Nothing was booked yet.')} />}
    />
  )
}
