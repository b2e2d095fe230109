/** Gauges that are read at each scrape, and the merging of those of several processes. */

interface GaugeKind {
  readonly help: string
  readonly labels: readonly string[]
  /** Over the processes that share a port. */
  readonly across: 'sum' | 'max' | 'min'
}

export const GAUGES = {
  tollgate_journal_bytes: {
    help: 'Size of the settlement journal on disk.',
    labels: [],
    across: 'sum',
  },
  tollgate_journal_unbooked: {
    help: 'Settlements in the journal that are not yet booked in PostgreSQL.',
    labels: [],
    across: 'sum',
  },
  tollgate_settlement_lag_seconds: {
    help: 'Age of the oldest settlement that is not yet booked in PostgreSQL; 0 when all are.',
    labels: [],
    across: 'max',
  },
  tollgate_log_lag_seconds: {
    help: 'Age of the oldest row that is booked in PostgreSQL and not yet copied to ClickHouse.',
    labels: [],
    across: 'max',
  },
  tollgate_wallets_negative: {
    help: 'Wallets whose balance is below zero, as last counted.',
    labels: [],
    across: 'max',
  },
  tollgate_tasks_open: {
    help: 'Tasks that have not ended, as last counted.',
    labels: ['kind', 'state'],
    across: 'max',
  },
  tollgate_lost_submits_open: {
    help: 'Submits whose outcome at their provider is unknown, as last counted.',
    labels: [],
    across: 'max',
  },
  tollgate_engine_up: {
    help: 'Whether an engine answered when it was last asked: 1 or 0.',
    labels: ['engine'],
    across: 'min',
  },
  tollgate_buffered_body_bytes: {
    help: 'Bytes of request bodies that gateways hold until their calls are answered.',
    labels: [],
    across: 'sum',
  },
  tollgate_web_sockets: {
    help: 'Open WebSockets of clients.',
    labels: [],
    across: 'sum',
  },
  tollgate_usage_option_refusals: {
    help: 'Pairs of channel and model whose upstream refuses stream_options: their streams are not asked for usage.',
    labels: [],
    across: 'max',
  },
  tollgate_configuration_refused: {
    help: 'Whether the configuration file has problems, so that the one before stays in force: 1 or 0.',
    labels: [],
    across: 'max',
  },
  tollgate_reserved_credits: {
    help: 'Credits that the estimates of calls in flight reserve.',
    labels: [],
    across: 'sum',
  },
  tollgate_draining: {
    help: 'Whether the gateway is draining: 1 or 0.',
    labels: [],
    across: 'max',
  },
} as const satisfies Record<string, GaugeKind>

export type GaugeName = keyof typeof GAUGES
export const GAUGE_NAMES = Object.keys(GAUGES) as GaugeName[]
