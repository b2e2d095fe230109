/** Asks the running processes for the state of their channels. */
import {
  CHANNEL_REPORT_SUBJECT,
  type ProcessReport,
  processReport,
} from '../../schemas/config/channel-report.ts'
import type { Nats } from '../nats/nats.ts'

const BOUND_MS = 2_000

/** Reads reports. A process of another version may report otherwise: it is left out. */
export const readReports = (answers: readonly string[] | null): ProcessReport[] | null =>
  answers?.flatMap((answer) => processReport.safeParse(JSON.parse(answer)).data ?? []) ?? null

/** Returns each process's report; null without an answer. */
export const processReports = async (nats: Pick<Nats, 'survey'>): Promise<ProcessReport[] | null> =>
  readReports(await nats.survey(CHANNEL_REPORT_SUBJECT, BOUND_MS))
