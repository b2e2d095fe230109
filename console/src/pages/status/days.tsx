/** The last days of a model as bars: one control, on which the pointer or the arrow keys choose a day. */
import { useState } from 'react'
import type { ServiceStatus } from '../../../../schemas/status.ts'
import { t } from '../../i18n.ts'

type Day = ServiceStatus['models'][number]['days'][number]

const FAILING_BELOW = 50
const DEGRADED_BELOW = 95

/** Bars differ in height too: some readers cannot tell the colors apart. */
function chooseBar(rate: number | null): string {
  if (rate === null) return 'h-1/6 bg-edge'
  if (rate < FAILING_BELOW) return 'h-2/5 bg-bad'
  if (rate < DEGRADED_BELOW) return 'h-3/4 bg-warn'
  return 'h-full bg-good'
}

const printRate = (rate: number | null): string =>
  rate === null ? t('No calls') : t('{rate}% of calls succeeded', { rate })

interface DayBarsProps {
  readonly model: string
  readonly days: readonly Day[]
}

export function DayBars({ model, days }: DayBarsProps) {
  const last = days.length - 1
  const [at, setAt] = useState(last)
  const day = days[at]!
  const choose = (index: number) => setAt(Math.min(Math.max(index, 0), last))
  return (
    <div>
      <div
        role="slider"
        tabIndex={0}
        aria-label={t('Days of {model}', { model })}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={`${day.date}: ${printRate(day.success_rate)}`}
        className="flex h-8 touch-pan-y items-end rounded-sm"
        onPointerMove={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect()
          choose(Math.floor(((clientX - left) / width) * days.length))
        }}
        onPointerLeave={() => setAt(last)}
        onKeyDown={(event) => {
          const next = {
            ArrowLeft: at - 1,
            ArrowDown: at - 1,
            ArrowRight: at + 1,
            ArrowUp: at + 1,
            Home: 0,
            End: last,
          }[event.key]
          if (next === undefined) return
          event.preventDefault()
          choose(next)
        }}
      >
        {days.map(({ date, success_rate: rate }, index) => (
          <span
            key={date}
            title={`${date}: ${printRate(rate)}`}
            className="flex h-full flex-1 items-end px-px"
          >
            <span className={`w-full rounded-sm ${chooseBar(rate)} ${index === at ? '' : 'opacity-70'}`} />
          </span>
        ))}
      </div>
      <p className="tabular mt-1 text-quiet text-xs">
        {day.date}: {printRate(day.success_rate)}
      </p>
    </div>
  )
}
