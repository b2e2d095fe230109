/** Short notices of success in a corner. */
import { useEffect, useState, useSyncExternalStore } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'

const SHOWN_MS = 5_000
const MAX_SHOWN = 3

interface Notice {
  readonly id: number
  readonly text: string
}

let notices: readonly Notice[] = []
let count = 0
const listeners = new Set<() => void>()

function show(next: readonly Notice[]): void {
  notices = next
  for (const listener of listeners) listener()
}

const close = (id: number): void => show(notices.filter((one) => one.id !== id))

/** Shows a notice for a few seconds; a screen reader reads it when idle. */
export function notify(text: string): void {
  count += 1
  show([...notices, { id: count, text }].slice(-MAX_SHOWN))
}

const onNotices = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function Toast({ id, text }: Notice) {
  const [isHeld, setHeld] = useState(false)
  useEffect(() => {
    if (isHeld) return
    const timer = setTimeout(() => close(id), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [isHeld, id])
  return (
    <li
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      className="flex items-center justify-between gap-3 rounded-lg border border-line bg-surface px-4 py-2.5 shadow-lg"
    >
      <p className="font-medium">{text}</p>
      <Button kind="quiet" onClick={() => close(id)}>
        {t('Close')}
      </Button>
    </li>
  )
}

/** Where no form has its buttons: over the navigation, and at the top of a phone. */
export const Toasts = () => (
  <ul
    aria-live="polite"
    className="fixed top-4 right-4 left-4 z-20 flex flex-col gap-2 sm:top-auto sm:right-auto sm:bottom-4 sm:w-80"
  >
    {useSyncExternalStore(onNotices, () => notices).map((notice) => (
      <Toast key={notice.id} {...notice} />
    ))}
  </ul>
)
