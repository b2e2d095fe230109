/** The tables that the log is kept in, and the views that feed what is made from the calls. */

/** Sums by day of the calls of a table. Nothing is changed in a name: it stands in the statement. */
export interface RollupNames {
  readonly table: string
  readonly view: string
  /** Whether rows are split by key. */
  readonly hasKeys: boolean
}

export interface LogNames {
  readonly calls: string
  readonly byDay: RollupNames
  readonly byModel: RollupNames
  readonly failed: string
  readonly failedView: string
}

export const LIVE_NAMES: LogNames = {
  calls: 'calls',
  byDay: { table: 'calls_by_day', view: 'calls_by_day_view', hasKeys: true },
  byModel: { table: 'calls_by_model', view: 'calls_by_model_view', hasKeys: false },
  failed: 'calls_failed',
  failedView: 'calls_failed_view',
}

/** A second log beside the live one. */
export const FRESH_NAMES: LogNames = {
  calls: 'calls_rebuilt',
  byDay: { table: 'calls_by_day_rebuilt', view: 'calls_by_day_rebuilt_view', hasKeys: true },
  byModel: { table: 'calls_by_model_rebuilt', view: 'calls_by_model_rebuilt_view', hasKeys: false },
  failed: 'calls_failed_rebuilt',
  failedView: 'calls_failed_rebuilt_view',
}

/** What the calls are written to first, then what is made from them. */
export const tablesOf = ({ calls, failed, byDay, byModel }: LogNames): string[] => [
  calls,
  failed,
  byDay.table,
  byModel.table,
]
export const viewsOf = ({ byDay, byModel, failedView }: LogNames): string[] => [
  byDay.view,
  byModel.view,
  failedView,
]
