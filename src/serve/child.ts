/** How a forked process learns what it is and begins. */
import { runGateway } from './gateway.ts'
import type { Boot, ToChild, ToParent } from './messages.ts'
import { runSettler } from './settler.ts'

const BOOT_BOUND_MS = 10_000

function receiveBoot(): Promise<Boot> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('no boot message came: this process is started by serve')),
      BOOT_BOUND_MS,
    )
    process.once('message', (message: ToChild) => {
      clearTimeout(timer)
      if (message.type === 'boot') resolve(message.boot)
      else reject(new Error(`expected a boot message, got ${message.type}`))
    })
  })
}

export async function runChild(): Promise<void> {
  const ignoreTerminal = () => {}
  // The supervisor hears the terminal and says by message when to end.
  process.on('SIGINT', ignoreTerminal)
  const boot = await receiveBoot()
  process.title = `tollgate: ${boot.role} ${boot.index}`
  try {
    await (boot.role === 'gateway' ? runGateway(boot) : runSettler(boot))
  } catch (error) {
    process.send?.({ type: 'failed', message: (error as Error).message } satisfies ToParent, () =>
      process.exit(1),
    )
  }
}
