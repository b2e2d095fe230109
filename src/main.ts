/** The composition root: the arguments decide the role of the process. */
import { CHILD_MARK } from './server/messages.ts'

// Loaded one or the other: a child has no use for the command line, nor a command for a gateway.
if (process.argv.some((word) => word.startsWith(CHILD_MARK))) {
  const { runChild } = await import('./server/child.ts')
  await runChild()
} else {
  const { main } = await import('./cli/main.ts')
  process.exitCode = await main(process.argv.slice(2))
}
