/** The code of money and state, and the tests that have to notice if it changes. */
export interface Area {
  readonly name: string
  /** Patterns of files. */
  readonly code: readonly string[]
  readonly tests: readonly string[]
  /** Modules, or tests, keep something from run to run. */
  readonly hasState?: true
  /** More than a test takes on a busy machine: one that waits for ever has noticed the mutant. 10 by default. */
  readonly testSeconds?: number
}

export const AREAS: readonly Area[] = [
  {
    name: 'pricing',
    code: ['src/core/pricing/*.ts'],
    tests: [
      'test/src/core/token-counts.test.ts',
      'test/src/core/pricing.test.ts',
      'test/src/core/usage-bounds.test.ts',
      'test/src/core/price-list.test.ts',
      'test/src/core/kept-price.test.ts',
    ],
  },
  {
    name: 'media',
    code: ['src/core/media/pricing.ts', 'src/core/payments/price.ts'],
    tests: ['test/src/core/media.test.ts'],
  },
  {
    name: 'money',
    code: ['schemas/money.ts'],
    tests: ['test/schemas.test.ts', 'test/src/core/pricing.test.ts', 'test/src/core/call-log.test.ts'],
  },
  {
    name: 'limits',
    code: ['src/core/limits/*.ts'],
    tests: ['test/src/core/limits.test.ts'],
  },
  {
    name: 'limiter',
    code: ['src/limits/*.ts'],
    tests: ['test/src/limits/processes-agree-on-limits.test.ts'],
  },
  {
    name: 'keys',
    code: ['src/core/keys/*.ts'],
    tests: ['test/src/core/keys.test.ts'],
    hasState: true,
    testSeconds: 120,
  },
  {
    name: 'wallet',
    code: ['src/credentials/wallet.ts', 'pipelines/calls/balance.ts', 'pipelines/accounts/balance.ts'],
    tests: ['test/pipelines/calls/money-and-limits-before-a-call.test.ts', 'test/src/credentials.test.ts'],
  },
  {
    name: 'budgets',
    code: ['src/credentials/budget.ts', 'schemas/accounts/budget.ts'],
    tests: [
      'test/src/credentials.test.ts',
      'test/pipelines/calls/calls.test.ts',
      'test/pipelines/accounts/accounts.test.ts',
    ],
  },
  {
    name: 'stages',
    code: ['pipelines/chat/precharge.ts', 'pipelines/calls/{max-price,rate-limit}.ts'],
    tests: [
      'test/pipelines/chat/precharge.test.ts',
      'test/pipelines/calls/money-and-limits-before-a-call.test.ts',
    ],
  },
  {
    name: 'idempotency',
    code: ['pipelines/calls/{claim,idempotency}.ts'],
    tests: ['test/pipelines/calls/idempotency.test.ts'],
  },
  {
    name: 'calls',
    code: ['pipelines/chat/select-model.ts', 'pipelines/chat/forward/{call-record,charge,route-choice}.ts'],
    tests: [
      'test/pipelines/chat/requests.test.ts',
      'test/pipelines/chat/usage.test.ts',
      'test/pipelines/chat/other-models.test.ts',
      'test/pipelines/chat/forward.test.ts',
      'test/pipelines/chat/failover.test.ts',
      'test/pipelines/chat/route-choice.test.ts',
    ],
    hasState: true,
    testSeconds: 120,
  },
  {
    name: 'settlement',
    code: ['pipelines/settlement/*.ts'],
    tests: [
      'test/pipelines/settlement/settlement-in-virtual-time.test.ts',
      'test/simulation/wallets.test.ts',
    ],
  },
  {
    name: 'tasks',
    code: [
      'schemas/tasks/task.ts',
      'pipelines/tasks/transition.ts',
      'pipelines/tasks/end/{charge,deadline,settlement}.ts',
    ],
    tests: [
      'test/pipelines/tasks/rules.test.ts',
      'test/pipelines/tasks/background-answers.test.ts',
      'test/docs/tables.test.ts',
      'test/simulation/tasks/tasks-from-order-to-end.test.ts',
    ],
  },
  {
    name: 'task-work',
    code: [
      'pipelines/tasks/task.ts',
      'pipelines/tasks/{lost,order,poll,store,submit,worker}/*.ts',
      'pipelines/tasks/end/{cancel-upstream,end-task}.ts',
    ],
    tests: [
      'test/simulation/tasks/tasks-from-order-to-end.test.ts',
      'test/pipelines/tasks/ends.test.ts',
      'test/pipelines/tasks/faults.test.ts',
      'test/pipelines/tasks/lists.test.ts',
      'test/pipelines/tasks/orders.test.ts',
    ],
    hasState: true,
    testSeconds: 120,
  },
  {
    name: 'conversations',
    code: ['pipelines/chat/stored/state.ts', 'pipelines/chat/forward/response-notes.ts'],
    tests: ['test/pipelines/chat/stored.test.ts'],
  },
]
