/** Loads the code of a page. If that fails, says so in place and tries again, until the service answers. */
import { useEffect, useEffectEvent, useState } from 'react'
import { t } from '../i18n.ts'
import { ErrorState, Skeleton } from './states.tsx'

const RETRY_MS = 3_000
const RELOADED = 'tollgate-reloaded'
/** A second reload within this time would not help either. */
const RELOAD_AGAIN_MS = 60_000

/** Reloads the console, because a newer version of the service has different files. Drafts survive the reload. */
function reloadOnce(): void {
  if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < RELOAD_AGAIN_MS) return
  sessionStorage.setItem(RELOADED, String(Date.now()))
  location.reload()
}

const isServiceThere = (): Promise<boolean> =>
  fetch('/console/', { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  )

interface PageLoaderProps {
  load(): Promise<void>
  onLoaded(): void
}

export function PageLoader({ load, onLoaded }: PageLoaderProps) {
  const [isFailed, setFailed] = useState(false)
  const [attempt, setAttempt] = useState(0)
  const tryToLoad = useEffectEvent(() =>
    load().then(
      () => true,
      () => false,
    ),
  )
  const show = useEffectEvent(onLoaded)
  useEffect(() => {
    let isLeft = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async () => {
      const isThere = attempt === 0 || (await isServiceThere())
      const isLoaded = isThere && (await tryToLoad())
      if (isLeft) return
      if (isLoaded) return show()
      setFailed(true)
      if (attempt > 0 && isThere) reloadOnce()
      timer = setTimeout(() => setAttempt(attempt + 1), RETRY_MS)
    }
    void run()
    return () => {
      isLeft = true
      clearTimeout(timer)
    }
  }, [attempt])
  if (!isFailed) return <Skeleton rows={8} />
  return (
    <ErrorState
      error={
        new Error(
          t(
            'This page could not be loaded. Check your connection. The console tries again every few seconds.',
          ),
        )
      }
      onRetry={() => setAttempt(attempt + 1)}
    />
  )
}
