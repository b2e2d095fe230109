import { printDay } from '../format.ts'

/** Saves a CSV file, with the date in its name. */
export function saveCsv(name: string, parts: BlobPart[]): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(parts, { type: 'text/csv' }))
  link.download = `${name}-${printDay(new Date().toISOString())}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
}
