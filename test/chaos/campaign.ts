/** One run: an installation under load and faults, then quiet, then the check. */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Random } from '../simulation/random.ts'
import type { Teardown } from '../support/engines.ts'
import { outputPathOf } from '../support/service.ts'
import { check, type Outcome } from './checker/check.ts'
import { plannedFaults } from './faults/plan.ts'
import { strikeAll } from './faults/strike.ts'
import { victimsOf } from './faults/victims.ts'
import { type History, openHistory } from './history.ts'
import { CHAT_PRICES, IMAGE_PRICES } from './installation/catalog.ts'
import { type Installation, startInstallation } from './installation/installation.ts'
import { makeKey, makeKeys } from './load/keys.ts'
import { startLoad } from './load/load.ts'
import { recordEnd, untilQuiet } from './quiet.ts'

const MINUTE_MS = 60_000
/** More than clients come to. */
const INTENTS_PER_MINUTE = 120

export interface CampaignOptions {
  readonly seed: number
  readonly minutes: number
  /** Seed, history and output of all processes are written there. */
  readonly folder: string
  readonly say: (line: string) => void
}

/** Everything ends with the test; the folder stays. */
export async function runCampaign(
  t: Teardown,
  { seed, minutes, folder, say }: CampaignOptions,
): Promise<Outcome> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'seed'), `${seed}\n`)
  const history = openHistory(folder)
  const installation = await startInstallation(t, { logs: folder, say })
  const { databaseUrl, engines, nodes } = installation
  try {
    await play(installation, history, { seed, minutes, folder, say })
  } finally {
    await history.close()
    for (const { name, service } of nodes)
      copyFileSync(outputPathOf(service.configPath), join(folder, `${name}.log`))
  }
  const outcome = await check({ folder, databaseUrl, clickhouseUrl: engines.clickhouseUrl })
  writeFileSync(join(folder, 'outcome.json'), JSON.stringify(outcome, null, 2))
  return outcome
}

async function play(
  installation: Installation,
  { record }: History,
  { seed, minutes, say }: CampaignOptions,
): Promise<void> {
  const { nodes } = installation
  const { service } = nodes[0]!
  for (const [model, { input, output }] of Object.entries(CHAT_PRICES))
    record({ type: 'price', model, input: unitsOfToken(input), output: unitsOfToken(output), image: 0 })
  for (const [model, price] of Object.entries(IMAGE_PRICES))
    record({ type: 'price', model, input: 0, output: 0, image: Math.round(Number(price) * 1e8) })
  const keys = await makeKeys(service, record, minutes)
  const imageKey = await makeKey(service, record, 'images')
  const intentKeys = []
  for (let at = 0; at < INTENTS_PER_MINUTE * minutes; at++)
    intentKeys.push(await makeKey(service, record, `intent ${at}`))
  const endpoints = nodes.flatMap(({ name, url }) => (url === null ? [] : [{ node: name, url }]))
  say(`under load and faults for ${minutes} minutes`)
  const load = startLoad({ endpoints, keys, intentKeys, imageKey, seed, record })
  await strikeAll(plannedFaults(new Random(seed), minutes * MINUTE_MS), victimsOf(installation), record)
  load.stop()
  await load.done
  say('waits until all is booked')
  await untilQuiet(installation).catch((error: Error) => say(error.message))
  await recordEnd(installation, [...keys, imageKey], record)
}

/** From credits for a million tokens. */
const unitsOfToken = (price: string): number => Math.round(Number(price) * 100)
