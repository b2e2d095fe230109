/** A fresh service and a browser, for as long as `visit` takes. */
import type { Browser } from 'playwright-core'
import { type Database, openDatabase } from '../../src/postgres/database.ts'
import { launchChromium } from '../../test/support/launch-chromium.ts'
import { MASTER_KEY, startTollgate } from '../harness/service.ts'

export interface Console {
  readonly baseUrl: string
  readonly database: Database
  readonly browser: Browser
}

export async function withConsole<Result>(
  folder: string,
  configuration: unknown,
  visit: (console: Console) => Promise<Result>,
): Promise<Result> {
  const { child, record } = await startTollgate({ folder, configuration, env: { LOG_LEVEL: 'error' } })
  const url = record.database_url!
  const database = await openDatabase({ url, masterKey: MASTER_KEY, maxConnections: 1, name: 'bench' })
  const browser = await launchChromium()
  try {
    return await visit({ baseUrl: record.base_url!, database, browser })
  } finally {
    await browser.close()
    await database.close()
    await child.stop()
  }
}
