/** The report of an import, for the API and the command line. */
import type { ImportReport } from '../../../schemas/management/knowledge/imports.ts'
import type { ImportOutcome, LinkReport } from '../../../src/postgres/knowledge/types.ts'

/** Paths and faults that are listed; a number follows for the rest. */
export const REPORTED_ENTRIES = 10
/** Of pages without a file more are listed: who prunes wants to know which. */
const REPORTED_GONE = 1_000

interface Imported extends ImportOutcome {
  readonly ignoredFields: ReadonlyMap<string, number>
}

export const makeReport = (
  { added, changed, unchanged, gone, pages, ignoredFields }: Imported,
  { unresolved, sameTitle }: LinkReport,
  pruned: boolean,
): ImportReport => ({
  pages,
  added,
  changed,
  unchanged,
  gone: gone.length,
  pruned,
  gone_paths: gone.slice(0, REPORTED_GONE),
  unresolved_links: {
    count: unresolved.count,
    first: unresolved.first.map(({ path, link }) => ({ path, link })),
  },
  same_titles: {
    count: sameTitle.count,
    first: sameTitle.first.map(({ title, paths }) => ({ title, paths: [...paths] })),
  },
  ignored_fields: Object.fromEntries(ignoredFields),
})
