/** Writes the calls that match the filters into a CSV file, page by page. */
import { useLingui } from '@lingui/react'
import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { listCalls } from '../../../../schemas/management/calls/calls.ts'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import { LOG_CSV_HEADER, logCsvRecord } from '../../../../src/core/call-log/csv.ts'
import { get } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { ErrorState } from '../../ui/states.tsx'
import { saveFile } from '../save-file.ts'
import type { CallFilters } from './filters.tsx'

const PAGE_ROWS = 200

interface ExportProps {
  readonly accountId: string
  readonly filters: CallFilters
}

async function csvOf(
  { accountId, filters }: ExportProps,
  signal: AbortSignal,
  onRows: (count: number) => void,
): Promise<string[]> {
  const pieces = [LOG_CSV_HEADER]
  let cursor: string | null = null
  let count = 0
  do {
    const page: AnswerOf<typeof listCalls> = await get<typeof listCalls>(
      '/calls',
      {
        account_id: accountId,
        ...filters,
        limit: PAGE_ROWS,
        ...(cursor !== null && { cursor }),
      } as never,
      signal,
    )
    pieces.push(page.data.map(logCsvRecord).join(''))
    count += page.data.length
    onRows(count)
    cursor = page.next_cursor
  } while (cursor !== null)
  return pieces
}

const fileName = () => `calls-${new Date().toISOString().slice(0, 10)}.csv`

export function Export(props: ExportProps) {
  useLingui()
  const [count, setCount] = useState(0)
  const stop = useRef<AbortController | null>(null)
  const writing = useMutation({
    mutationFn: (signal: AbortSignal) => csvOf(props, signal, setCount),
    onSuccess: (pieces) => saveFile(fileName(), 'text/csv', pieces),
  })
  const start = () => {
    setCount(0)
    stop.current = new AbortController()
    writing.mutate(stop.current.signal)
  }
  const close = () => {
    stop.current?.abort()
    writing.reset()
  }
  const failure = writing.error?.name === 'AbortError' ? null : writing.error
  return (
    <>
      <Button onClick={start}>CSV</Button>
      <Dialog title={t('Export as CSV')} isOpen={writing.isPending || failure !== null} onClose={close}>
        <p aria-live="polite" className="tabular">
          {t('{count} calls written', { count: count.toLocaleString('en') })}
        </p>
        {writing.isPending && (
          <progress className="mt-3 h-2 w-full accent-accent" aria-label={t('Progress')} />
        )}
        {failure && <ErrorState error={failure} onRetry={start} />}
        <Actions>
          <Button onClick={close}>{t('Cancel')}</Button>
        </Actions>
      </Dialog>
    </>
  )
}
