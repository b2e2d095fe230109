/** The configuration that serves where no other is named: an ordinary file that users can read and copy. */
import { fileURLToPath } from 'node:url'

export const DEMONSTRATION_FILE = fileURLToPath(new URL('./demonstration.yaml', import.meta.url))

/** Address of the simulated provider: an origin without a path, such as `http://127.0.0.1:41234`. */
export const SIMULATOR_URL_VARIABLE = 'TOLLGATE_SIMULATOR_URL'

/** Returns whether a configuration with these `${NAME}`s needs the simulated provider to be started. */
export function needsSimulator(variables: ReadonlySet<string>): boolean {
  return variables.has(SIMULATOR_URL_VARIABLE)
}
