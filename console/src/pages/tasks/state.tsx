/** The state of a task, in the language of the page. */
import { t } from '../../i18n.ts'
import { Badge } from '../../ui/states.tsx'

const TONES: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'neutral'>> = {
  succeeded: 'good',
  failed: 'bad',
  refused: 'bad',
  expired: 'bad',
  cancelled: 'neutral',
}

export const stateNames = (): Readonly<Record<string, string>> => ({
  waiting: t('Waiting'),
  submitting: t('Being submitted'),
  queued: t('Queued'),
  running: t('Running'),
  storing: t('Being stored'),
  succeeded: t('Succeeded'),
  failed: t('Failed'),
  expired: t('Expired'),
  cancelled: t('Cancelled'),
  refused: t('Refused'),
})

export function TaskState({ state }: { readonly state: string }) {
  return <Badge tone={TONES[state] ?? 'warn'}>{stateNames()[state] ?? state}</Badge>
}
