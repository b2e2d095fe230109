/** Tasks as their rows say, and channels, for tests of what endpoints make of them. */
import { type ChannelEntry, channelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult, mediaJob, type ResultFile, resultFile } from '../../../schemas/media/job.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { PRICE } from '../../src/postgres/tasks/support.ts'

export const SUBMITTED_AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** The status that clients see of a state which has another name. */
export const STATUSES: Readonly<Partial<Record<Task['state'], string>>> = {
  waiting: 'queued',
  submitting: 'queued',
  storing: 'running',
  refused: 'failed',
}

/** A video that is queued, unless told otherwise. */
export function taskOf(more: Partial<Task> = {}): Task {
  return {
    id: newId('vid', SUBMITTED_AT),
    kind: 'video',
    accountId: 'acc_a',
    keyId: 'key_a',
    requestId: newId('req', SUBMITTED_AT),
    model: 'film',
    protocol: 'videos',
    sessionId: null,
    job: mediaJob.parse({ work: 'video', content: [{ type: 'text', text: 'a kite' }], duration: 5 }),
    price: { ...PRICE, perUnit: '1', discount: '1' },
    hold: 0n,
    isEarly: false,
    isAwaited: false,
    channelIds: ['studio'],
    state: 'queued',
    version: 1,
    channelId: 'studio',
    upstreamModel: 'studio-film',
    upstreamId: 't-1',
    upstreamState: 'queued',
    result: null,
    errorCode: null,
    errorMessage: null,
    refusedStatus: null,
    attempts: [],
    cost: null,
    submittedAt: SUBMITTED_AT,
    acceptedAt: SUBMITTED_AT,
    endedAt: null,
    deadlineAt: SUBMITTED_AT + 60_000,
    deletedAt: null,
    touchedAt: SUBMITTED_AT,
    chain: 1,
    ...more,
  }
}

export const fileOf = (more: Partial<ResultFile>): ResultFile => resultFile.parse({ role: 'video', ...more })
export const resultOf = (more: Partial<NonNullable<Task['result']>>): NonNullable<Task['result']> => ({
  ...emptyResult(),
  ...more,
})

export const channelAt = (base_url: string, more: Partial<ChannelEntry> = {}): ChannelEntry => ({
  ...channelEntry.parse({ id: 'studio', protocol: 'task', base_url, api_key: 'studio-key-1', models: {} }),
  ...more,
})
