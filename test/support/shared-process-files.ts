/** Which test files run in one process: those of a folder with a `shared-process.ts`, and of its subfolders without one. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export const SHARED_PROCESS = 'shared-process.ts'

/** Returns the test files that run in the process of `folder`, sorted, as paths below it. */
export function filesOfSharedProcess(folder: string): string[] {
  const below = (path: string): string[] => {
    const entries = readdirSync(join(folder, path), { withFileTypes: true })
    if (path !== '' && entries.some(({ name }) => name === SHARED_PROCESS)) return []
    return entries.flatMap((entry) => {
      const name = join(path, entry.name)
      if (entry.isDirectory()) return below(name)
      return name.endsWith('.test.ts') ? [name] : []
    })
  }
  return below('').sort()
}
