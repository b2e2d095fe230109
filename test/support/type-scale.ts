/** The text sizes that the console declares. */
import { readText } from './source-files.ts'

/** Returns the sizes in rem, by name. */
export const readTypeScale = (): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...readText('console/src/styles.css').matchAll(/^ {2}--text-(\w+): ([\d.]+)rem;$/gm)].map(
      ([, name = '', rem]) => [name, Number(rem)],
    ),
  )
