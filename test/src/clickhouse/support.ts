/** Calls for the tests of the log: complete, and different only where a test says so. */
import type { CallPageQuery } from '../../../schemas/call-log/page-query.ts'
import { emptySettlement } from '../../../src/core/call-log/settlement.ts'
import type { BookedCall } from '../../support/usage-text.ts'

export const BASE_INSTANT = Date.UTC(2026, 0, 15, 12)

export const bookedCall = (id: number, more: Partial<BookedCall> = {}): BookedCall => ({
  ...emptySettlement(
    {
      request_id: `req_${String(id).padStart(26, '0')}`,
      account_id: 'acc_a',
      key_id: 'key_a',
      model: 'sonata-large',
      protocol: 'chat-completions',
      stream: true,
      submitted_at: BASE_INSTANT + id - 40,
      estimate: '1000000',
      session_id: null,
    },
    BASE_INSTANT + id,
  ),
  id: BigInt(id),
  key_name: 'first',
  key_prefix: 'sk-tollgate-0123abcd',
  status: 'success',
  input_tokens: 10,
  output_tokens: 20,
  cost: '212500',
  usage_source: 'upstream',
  ttfb_ms: 12,
  channel_id: 'primary',
  attempts_count: 1,
  ...more,
})

/** The first page of all calls of an account, without any filter. */
export const pageOfAll = (more: Pick<CallPageQuery, 'to' | 'order' | 'limit'>): CallPageQuery => ({
  accountId: 'acc_a',
  keyIds: null,
  models: null,
  statuses: null,
  unitTypes: null,
  errorCodes: null,
  ref: null,
  sessionId: null,
  from: 0,
  after: null,
  ...more,
})
