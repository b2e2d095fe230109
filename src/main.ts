/** The composition root: what the program is called as decides what it becomes. */
import { run } from './cli/run.ts'
import { commandLineWiring } from './cli/wiring.ts'
import { CHILD_MARK, runChild } from './serve/child.ts'
import { serve } from './serve/serve.ts'

if (process.argv.some((word) => word.startsWith(CHILD_MARK))) await runChild()
else process.exitCode = await run(process.argv.slice(2), commandLineWiring({ serve }))
