/** Tollgate's program, with the null journal in its gateways: calls are metered and priced, and not charged. */
import { CHILD_MARK } from '../../src/server/messages.ts'

// A child runs the file that its supervisor runs. Each loads only what its role needs.
if (process.argv.includes(`${CHILD_MARK}gateway`)) {
  const [{ runChild }, { runGateway }, { nullJournal }] = await Promise.all([
    import('../../src/server/child.ts'),
    import('../../src/server/gateway/gateway.ts'),
    import('./null-journal.ts'),
  ])
  await runChild(async () => (boot) => runGateway(boot, async () => nullJournal()))
} else await import('../../src/main.ts')
