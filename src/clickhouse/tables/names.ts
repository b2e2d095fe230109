/** The tables of the log, and the views that fill those derived from the calls. */

/** Tables of sums by day. Names are written into statements unchanged. */
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
  /** Of the calls with a known upstream cost. */
  readonly costs: Pick<RollupNames, 'table' | 'view'>
  readonly failed: string
  readonly failedView: string
}

export const LIVE_NAMES: LogNames = {
  calls: 'calls',
  byDay: { table: 'calls_by_day', view: 'calls_by_day_view', hasKeys: true },
  byModel: { table: 'calls_by_model', view: 'calls_by_model_view', hasKeys: false },
  costs: { table: 'costs_by_day', view: 'costs_by_day_view' },
  failed: 'calls_failed',
  failedView: 'calls_failed_view',
}

/** A second log beside the live one. */
export const FRESH_NAMES: LogNames = {
  calls: 'calls_rebuilt',
  byDay: { table: 'calls_by_day_rebuilt', view: 'calls_by_day_rebuilt_view', hasKeys: true },
  byModel: { table: 'calls_by_model_rebuilt', view: 'calls_by_model_rebuilt_view', hasKeys: false },
  costs: { table: 'costs_by_day_rebuilt', view: 'costs_by_day_rebuilt_view' },
  failed: 'calls_failed_rebuilt',
  failedView: 'calls_failed_rebuilt_view',
}

/** Returns the tables: those that the calls are written to first, then the derived ones. */
export const tablesOf = ({ calls, failed, byDay, byModel, costs }: LogNames): string[] => [
  calls,
  failed,
  byDay.table,
  byModel.table,
  costs.table,
]
export const viewsOf = ({ byDay, byModel, costs, failedView }: LogNames): string[] => [
  byDay.view,
  byModel.view,
  costs.view,
  failedView,
]
