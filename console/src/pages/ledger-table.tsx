/** The entries of a wallet's ledger, newest first. */
import type { AnswerOf } from '../api/client.ts'
import type { useList } from '../api/read.ts'
import { t } from '../i18n.ts'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Id, Money, TextLink, Time } from '../ui/text.tsx'

type Entry = AnswerOf<'listLedger'>['data'][number]

/** Returns the translated kind of an entry. */
export function nameKind(kind: Entry['kind']): string {
  const names: Readonly<Record<Entry['kind'], string>> = {
    charge: t('Charge'),
    topup: t('Top-up'),
    trial: t('Trial credit'),
    adjustment: t('Adjustment'),
    reversal: t('Card payment reversed'),
    refund: t('Refund'),
    hold: t('Hold'),
    release: t('Release'),
  }
  return names[kind]
}

export function LedgerTable({ list }: { readonly list: ReturnType<typeof useList<'listLedger'>> }) {
  const columns: Column<Entry>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Kind'),
      // An adjustment that names a call or a task refunds its charge.
      cell: ({ kind, ref }) => nameKind(kind === 'adjustment' && ref !== null ? 'refund' : kind),
    },
    { name: t('Credits'), isNumber: true, cell: ({ amount }) => <Money amount={amount} /> },
    {
      name: t('Call or task'),
      cell: ({ ref, account_id: account }) =>
        ref !== null && (
          <span className="inline-flex items-center gap-2">
            <Id id={ref} />
            <TextLink to="/calls" search={{ account, ref, period: 'all' }}>
              {t('Show')}
            </TextLink>
            {!ref.startsWith('req_') && (
              <TextLink to="/tasks" search={{ account, task: ref }}>
                {t('Task')}
              </TextLink>
            )}
          </span>
        ),
    },
    { name: t('Note'), cell: ({ note, reference }) => note ?? reference ?? '–' },
  ]
  return <ListPanel title={t('Ledger')} list={list} columns={columns} empty={t('No entries match.')} />
}
