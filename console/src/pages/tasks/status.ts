/** The translated statuses of tasks. */
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import type { Statuses } from '../../ui/states.tsx'

export const describeStatuses = (): Statuses<AnswerOf<'listTasks'>['data'][number]['state']> => ({
  waiting: ['warn', t('Waiting')],
  submitting: ['warn', t('Submitting')],
  queued: ['warn', t('Queued')],
  running: ['warn', t('Running')],
  storing: ['warn', t('Storing')],
  succeeded: ['good', t('Succeeded')],
  failed: ['bad', t('Failed')],
  expired: ['bad', t('Expired')],
  cancelled: ['neutral', t('Cancelled')],
  refused: ['bad', t('Refused')],
})
