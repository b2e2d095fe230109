/** What a run leaves behind. */
import { rmSync } from 'node:fs'

/** Says how to repeat a run, and where it writes. */
export const keptWhere = (seed: number, folder: string): string =>
  `seed ${seed}; history, logs and outcome.json of a run that fails stay in ${folder}`

/** Removes the folder of a run in which nothing was wrong. */
export function dropUnlessWrong(folder: string, problems: readonly string[]): void {
  if (problems.length === 0) rmSync(folder, { recursive: true, force: true })
}
