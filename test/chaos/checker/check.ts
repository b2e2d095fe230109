/**
 * Reads the history of a run and the engines' tables, and names all that must not be. It imports nothing of the product,
 * so a rule that the product has wrong is not wrong here too.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type HistoryLine, readHistory } from '../history.ts'
import { checkBooks } from './books.ts'
import { checkCalls } from './calls.ts'
import { checkIntents } from './intents.ts'
import { checkLimits } from './limits.ts'
import type { Problems } from './problems.ts'
import { readTables, type Tables } from './tables.ts'

const TABLES_FILE = 'tables.json'

export interface Run {
  readonly lines: { readonly [Type in HistoryLine['type']]: readonly Extract<HistoryLine, { type: Type }>[] }
  readonly tables: Tables
}

export interface CheckedFolder {
  readonly folder: string
  readonly databaseUrl: string
  readonly clickhouseUrl: string
}

export interface Outcome {
  readonly problems: Problems
  /** What the run was, in figures. */
  readonly figures: Readonly<Record<string, number>>
}

export async function check({ folder, databaseUrl, clickhouseUrl }: CheckedFolder): Promise<Outcome> {
  const all = readHistory(folder)
  const of = <Type extends HistoryLine['type']>(type: Type) =>
    all.filter((line): line is Extract<HistoryLine, { type: Type }> => line.type === type)
  const run: Run = {
    lines: {
      fault: of('fault'),
      key: of('key'),
      price: of('price'),
      call: of('call'),
      provider: of('provider'),
      balance: of('balance'),
      verify: of('verify'),
    },
    tables: await readTables(databaseUrl, clickhouseUrl),
  }
  // The engines end with the run: without their rows nobody finds out why it failed.
  writeFileSync(join(folder, TABLES_FILE), JSON.stringify(run.tables))
  const limits = checkLimits(run)
  const problems = [...checkCalls(run), ...checkBooks(run), ...checkIntents(run), ...limits.problems]
  return { problems, figures: { ...figuresOf(run), ...limits.figures } }
}

function figuresOf({ lines, tables }: Run): Record<string, number> {
  const calls = lines.call
  return {
    faults: lines.fault.filter(({ state }) => state === 'begins').length,
    requests: calls.length,
    'answered with 200': calls.filter(({ status }) => status === 200).length,
    'complete answers': calls.filter(({ status, end }) => status === 200 && end === 'complete').length,
    'without an answer': calls.filter(({ status }) => status === null).length,
    'answered with 503': calls.filter(({ status }) => status === 503).length,
    rows: tables.rows.length,
    'interrupted rows': tables.rows.filter(({ status }) => status === 'interrupted').length,
    tasks: tables.tasks.length,
    replays: calls.filter(({ isReplay }) => isReplay).length,
  }
}
