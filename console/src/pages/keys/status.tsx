/** Whether a key works, and how much of its cap is spent. */
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Badge } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import type { Key } from './values.ts'

export type Created = AnswerOf<'createKey'>

const NEAR = 0.8

export function KeyStatus({ item: { revoked_at, enabled, expires_at } }: { readonly item: Key }) {
  if (revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  if (expires_at !== null && Date.parse(expires_at) <= Date.now())
    return <Badge tone="bad">{t('Expired')}</Badge>
  return enabled ? <Badge tone="good">{t('Active')}</Badge> : <Badge tone="warn">{t('Off')}</Badge>
}

/** @param spent credits, as a decimal number; `cap` too */
export function CapBar({ spent, cap }: { readonly spent: string; readonly cap: string }) {
  const share = Math.min(1, Number(spent) / Number(cap) || 0)
  return (
    <span className="inline-flex flex-col items-end gap-1">
      <span>
        <Money amount={spent} /> / <Money amount={cap} />
      </span>
      <meter
        className="h-1.5 w-32"
        min={0}
        max={1}
        low={NEAR}
        high={NEAR}
        optimum={0}
        value={share}
        aria-label={t('{percent}% of the cap', { percent: Math.round(share * 100) })}
      />
    </span>
  )
}
