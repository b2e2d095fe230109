/** Routes below `/v1/videos`. */
import { deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  deleteAvatar,
  listAvatarPresets,
  listAvatars,
  registerAvatar,
  showAvatar,
} from '../../../pipelines/media/videos/avatars.ts'
import {
  listClipCategories,
  listClipTemplates,
  recogniseSubtitles,
  showSubtitles,
} from '../../../pipelines/media/videos/clips.ts'
import { makeVideo, videoTasks } from '../../../pipelines/media/videos/videos.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type RoutedPath, routed } from './routed.ts'

export function videoRoutes(groups: CallGroups): readonly RoutedPath[] {
  const { access, orders, mediaTasks, made, files } = groups
  const { tasks, lists } = made
  const videos = videoTasks(access, mediaTasks, files)
  return [
    routed('/v1/videos/generations', { POST: makeVideo(orders, made), GET: videos.list }),
    routed('/v1/videos/generations/{id}', { GET: videos.show, DELETE: videos.cancel }),
    routed('/v1/videos/generations/{id}/files', { DELETE: deleteFiles(access, groups, 'video') }),
    routed('/v1/videos/avatars', { POST: registerAvatar(orders), GET: listAvatars(access, tasks) }),
    routed('/v1/videos/avatars/presets', { GET: listAvatarPresets(access, lists) }),
    routed('/v1/videos/avatars/{id}', {
      GET: showAvatar(access, tasks),
      DELETE: deleteAvatar(access, tasks),
    }),
    routed('/v1/videos/clip-templates', { GET: listClipTemplates(access, lists) }),
    routed('/v1/videos/clip-templates/categories', { GET: listClipCategories(access, lists) }),
    routed('/v1/videos/clip-subtitles', { POST: recogniseSubtitles(orders) }),
    routed('/v1/videos/clip-subtitles/{id}', { GET: showSubtitles(access, tasks) }),
  ]
}
