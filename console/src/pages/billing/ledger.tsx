/** The ledger of a wallet: a month by day and kind, its entries by filter and search, and all of it as a file. */
import { getRouteApi } from '@tanstack/react-router'
import { LEDGER_KINDS } from '../../../../schemas/accounts/account.ts'
import { parseCredits, printCredits } from '../../../../schemas/money.ts'
import { printCsvRecord } from '../../../../src/core/call-log/csv-records.ts'
import type { AnswerOf, InputOf } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { nameInZone, printDay, printNumber, readZoneName } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, SelectField } from '../../ui/form.tsx'
import { EmptyState, Panel, QueryState } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import { CsvExport } from '../csv-export.tsx'
import { FilterPanel, SearchForm } from '../filters.tsx'
import { LedgerTable, nameKind } from '../ledger-table.tsx'

const route = getRouteApi('/signed-in/billing')

type Month = AnswerOf<'showLedgerMonth'>
type Entry = AnswerOf<'listLedger'>['data'][number]

const HEADER = ['time', 'kind', 'amount_credits', 'call_or_task', 'note', 'balance_credits']

/** Returns a function that prints the entries, newest first, with the balance after each. */
function recordEntries(balance: string): (entry: Entry) => string {
  let after = parseCredits(balance)
  return ({ created_at, kind, amount, ref, note, reference }) => {
    const record = [created_at, kind, amount, ref, note ?? reference, printCredits(after)]
    after -= parseCredits(amount)
    return printCsvRecord(record)
  }
}

function Days({ month }: { readonly month: Month }) {
  const change = useChangeSearch()
  if (month.days.length === 0) return <EmptyState title={t('Nothing was booked in this month.')} />
  return (
    <ol className="divide-y divide-line">
      {month.days.map(({ day, balance, kinds }) => (
        <li key={day} className="grid gap-x-6 gap-y-1 px-4 py-3 sm:grid-cols-[7rem_minmax(0,1fr)_14rem]">
          <time dateTime={day} className="tabular font-medium">
            {day}
          </time>
          <ul className="flex flex-col gap-1">
            {kinds.map(({ kind, entries, amount }) => (
              <li key={kind} className="flex flex-wrap items-baseline justify-between gap-x-4">
                <button
                  type="button"
                  className="text-left text-accent hover:underline"
                  onClick={() => change({ day, kind })}
                >
                  {nameKind(kind)} <span className="text-quiet text-sm">× {printNumber(entries)}</span>
                </button>
                <Money amount={amount} />
              </li>
            ))}
          </ul>
          <p className="flex justify-between gap-3 text-quiet text-sm sm:justify-end">
            {t('Closing balance')} <Money amount={balance} />
          </p>
        </li>
      ))}
    </ol>
  )
}

export function Ledger({ accountId, balance }: { readonly accountId: string; readonly balance: string }) {
  const { month: given, day, kind: asked, search } = route.useSearch()
  const change = useChangeSearch()
  const kind = LEDGER_KINDS.find((one) => one === asked)
  const timezone = readZoneName()
  const filter = { day, kind, search, timezone }
  const isList = day !== undefined || kind !== undefined || search !== undefined
  const today = printDay(new Date().toISOString())
  const month = given ?? today.slice(0, 7)
  const days = useGet(
    'showLedgerMonth',
    { id: accountId, month, timezone },
    { enabled: !isList, refetchOnMount: 'always' },
  )
  return (
    <section aria-label={t('Ledger')}>
      <SearchForm key={search} label={t('Search the ledger')} value={search} />
      <FilterPanel>
        <SelectField
          label={t('Kind')}
          value={kind ?? ''}
          onText={(text) => change({ kind: text })}
          options={[['', t('All')], ...LEDGER_KINDS.map((one) => [one, nameKind(one)] as const)]}
        />
        <Field
          label={nameInZone(t('Day'))}
          type="date"
          max={today}
          value={day ?? ''}
          onText={(text) => change({ day: text })}
        />
        <Field
          label={nameInZone(t('Month'))}
          type="month"
          max={today.slice(0, 7)}
          value={month}
          onText={(text) => change({ month: text, day: undefined, kind: undefined, search: undefined })}
        />
        <div className="flex items-end gap-2">
          {isList && (
            <Button onClick={() => change({ day: undefined, kind: undefined, search: undefined })}>
              {t('Clear')}
            </Button>
          )}
          <CsvExport
            name="ledger"
            operation="listLedger"
            input={{ id: accountId, ...filter }}
            loadFormat={async () => ({
              header: printCsvRecord(isList ? HEADER.slice(0, -1) : HEADER),
              toRecord: isList
                ? ({ created_at, kind, amount, ref, note, reference }: Entry) =>
                    printCsvRecord([created_at, kind, amount, ref, note ?? reference])
                : recordEntries(balance),
            })}
          />
        </div>
      </FilterPanel>
      {isList ? (
        <Entries accountId={accountId} filter={filter} />
      ) : (
        <Panel title={t('Ledger')}>
          <QueryState query={days} />
          {days.data && <Days month={days.data} />}
        </Panel>
      )}
    </section>
  )
}

interface EntriesProps {
  readonly accountId: string
  readonly filter: Omit<InputOf<'listLedger'>, 'id'>
}

const Entries = ({ accountId, filter }: EntriesProps) => (
  <LedgerTable list={useList('listLedger', { id: accountId, ...filter })} />
)
