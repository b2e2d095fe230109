/** The composition root: the arguments decide the role of the process. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CHILD_MARK } from './server/messages.ts'

// Compiled code is kept for the next start. The variable reaches the processes that this one starts.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('../node_modules/.cache/tollgate/compiled', import.meta.url),
)
enableCompileCache(process.env.NODE_COMPILE_CACHE)

// Loaded one or the other: a child has no use for the command line, nor a command for a gateway.
if (process.argv.some((word) => word.startsWith(CHILD_MARK))) {
  const { runChild } = await import('./server/child.ts')
  await runChild()
} else {
  const { main } = await import('./cli/main.ts')
  process.exitCode = await main(process.argv.slice(2))
}
