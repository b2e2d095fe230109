/** One service for every file of a process: borrowed by the first that asks, given back when the last has ended. */
import root from 'tap'
import { borrowService } from './lend-services.ts'
import type { LentService } from './service.ts'

const services = new Map<string, Promise<LentService>>()

/** Returns the service of this process that has `config` in force. */
export function serviceOfProcess(config: string): Promise<LentService> {
  const service = services.get(config) ?? borrowService(root, config)
  services.set(config, service)
  return service
}

/** Where servers of tests register that they end with the process. */
export const processTeardown = { teardown: (handler: () => unknown) => root.teardown(handler) }
