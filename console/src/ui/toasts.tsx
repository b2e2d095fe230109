/** Short notices of success in a corner. */
import { Toast } from '@base-ui/react/toast'
import { t } from '../i18n.ts'

const manager = Toast.createToastManager()

/** Shows a notice for a few seconds; a screen reader reads it when idle. */
export const notify = (text: string): void => void manager.add({ title: text, priority: 'low' })

function List() {
  const { toasts } = Toast.useToastManager()
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      className="flex items-center justify-between gap-3 rounded-lg border border-line bg-surface px-4 py-2.5 shadow-lg data-limited:hidden"
    >
      <Toast.Title className="font-medium" render={<p />} />
      <Toast.Close className="rounded px-1.5 text-quiet text-sm hover:bg-raised hover:text-ink">
        {t('Close')}
      </Toast.Close>
    </Toast.Root>
  ))
}

export function Toasts() {
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="fixed right-4 bottom-4 z-20 flex w-80 max-w-[calc(100vw-2rem)] flex-col gap-2">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}
