/** Work on payments in the task worker: automatic top-ups, and the comparison with the provider's books. */
import { topUpAutomatically } from '../../../pipelines/payments/automatic.ts'
import { reconcile } from '../../../pipelines/payments/reconcile.ts'
import { computePrice } from '../../core/payments/price.ts'
import { openLazyProvider } from '../../payments/provider.ts'
import type { Database } from '../../postgres/database.ts'
import type { LogOutput } from '../../telemetry/log.ts'
import type { Configuration } from '../configuration.ts'
import type { Boot } from '../messages.ts'

const AUTOMATIC_INTERVAL_MS = 1_000
const RECONCILE_INTERVAL_MS = 5 * 60_000
/** Soon after a start: webhooks may have been lost while the service was down. */
const FIRST_RECONCILE_MS = 5_000

interface PaymentWorkDeps {
  readonly boot: Pick<Boot, 'payments' | 'publicUrl'>
  readonly database: Database
  readonly configuration: Pick<Configuration, 'current'>
  readonly log: LogOutput
}

interface PaymentWork {
  /** Begins nothing more; resolves once what is under way has ended. */
  stop(): Promise<void>
}

/** Starts the work; without a payment provider there is none. */
export async function startPaymentWork({
  boot,
  database,
  configuration,
  log,
}: PaymentWorkDeps): Promise<PaymentWork> {
  const open = openLazyProvider(boot.payments)
  if (open === null) return { stop: async () => undefined }
  const provider = await open()
  const deps = { database, provider, log, publicUrl: boot.publicUrl }
  const automatic = repeat(AUTOMATIC_INTERVAL_MS, AUTOMATIC_INTERVAL_MS, async () => {
    const rates = configuration.current().config.payments
    await topUpAutomatically({ ...deps, computePrice: rates && ((credits) => computePrice(credits, rates)) })
  })
  const comparison = repeat(FIRST_RECONCILE_MS, RECONCILE_INTERVAL_MS, async () => {
    await reconcile(deps)
  })
  return {
    async stop() {
      await Promise.all([automatic.stop(), comparison.stop()])
    },
  }

  /** Repeats work, one run at a time. What fails is tried again at the next run. */
  function repeat(firstMs: number, intervalMs: number, work: () => Promise<void>): PaymentWork {
    let running: Promise<void> = Promise.resolve()
    let isStopped = false
    let timer: NodeJS.Timeout
    const run = () => {
      running = work()
        .catch((error) => log.warn({ err: error }, 'Work on payments failed; retrying'))
        .finally(() => plan(intervalMs))
    }
    const plan = (ms: number) => {
      if (!isStopped) timer = setTimeout(run, ms)
    }
    plan(firstMs)
    return {
      async stop() {
        isStopped = true
        clearTimeout(timer)
        await running
      },
    }
  }
}
