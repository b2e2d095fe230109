/** Writes a list into a CSV file, page by page. */

import { useMutation } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import type { ReadName } from '../api/client.ts'
import { readPages } from '../api/read.ts'
import { Button } from '../ui/button.tsx'
import { saveCsv } from './save-csv.ts'

const CsvProgress = lazy(async () => ({ default: (await import('./csv-progress.tsx')).CsvProgress }))

interface CsvExportProps<Entry> {
  /** The content of the file, such as `calls`. */
  readonly name: string
  /** The operation that lists the entries. */
  readonly operation: ReadName
  readonly input: Readonly<Record<string, unknown>>
  /** How the file is written; loaded when it is. */
  loadFormat(): Promise<CsvFormat<Entry>>
}

interface CsvFormat<Entry> {
  readonly header: string
  toRecord(entry: Entry): string
}

async function writeCsv<Entry>(
  { operation, input, loadFormat }: CsvExportProps<Entry>,
  signal: AbortSignal,
  onRows: (count: number) => void,
): Promise<BlobPart[]> {
  const { header, toRecord } = await loadFormat()
  const pieces: BlobPart[] = [header]
  let count = 0
  for await (const rows of readPages(operation, input as never, signal)) {
    // The browser can keep blobs on disk.
    pieces.push(new Blob([(rows as Entry[]).map(toRecord).join('')]))
    count += rows.length
    onRows(count)
  }
  return pieces
}

export function CsvExport<Entry>(props: CsvExportProps<Entry>) {
  const [count, setCount] = useState(0)
  const stop = useRef<AbortController | null>(null)
  const writing = useMutation({
    mutationFn: (signal: AbortSignal) => writeCsv(props, signal, setCount),
    onSuccess: (pieces) => saveCsv(props.name, pieces),
  })
  // The export ends when the user leaves the page.
  useEffect(() => () => stop.current?.abort(), [])
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
      {(writing.isPending || failure !== null) && (
        <Suspense>
          <CsvProgress count={count} failure={failure} onRetry={start} onClose={close} />
        </Suspense>
      )}
    </>
  )
}
