/** Routes of media: what makes it, the tasks that do, and the files that come of them. */
import { makeMusic, musicTasks } from '../../../pipelines/media/audio/music.ts'
import { makeSpeech, speechTasks } from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript } from '../../../pipelines/media/audio/transcripts.ts'
import { cloneVoice, deleteVoice, listVoices, showVoice } from '../../../pipelines/media/audio/voices.ts'
import { deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import { type LinkedFiles, files as readFile } from '../../../pipelines/media/files/files.ts'
import { editImages, imageTasks, makeImages } from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
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
import { type Family, UNCOUNTED } from './options.ts'

export function taskRoutes(groups: CallGroups, linked: LinkedFiles) {
  const { access, orders, mediaTasks, made, images: store, files } = groups
  const { tasks, lists } = made
  const images = imageTasks(access, mediaTasks, files)
  const videos = videoTasks(access, mediaTasks, files)
  const music = musicTasks(access, mediaTasks, files)
  const speech = speechTasks(access, mediaTasks, files)
  return {
    makeImages: makeImages(orders, store),
    editImages: { handler: editImages(orders, store), maxFormBytes: MAX_FORM_BYTES },
    listImages: images.list,
    showImage: images.show,
    cancelImage: images.cancel,
    deleteImageFiles: deleteFiles(access, groups, 'image'),
    makeVideo: makeVideo(orders, made),
    listVideos: videos.list,
    showVideo: videos.show,
    cancelVideo: videos.cancel,
    deleteVideoFiles: deleteFiles(access, groups, 'video'),
    registerAvatar: registerAvatar(orders),
    listAvatars: listAvatars(access, tasks),
    listAvatarPresets: listAvatarPresets(access, lists),
    showAvatar: showAvatar(access, tasks),
    deleteAvatar: deleteAvatar(access, tasks),
    listClipTemplates: listClipTemplates(access, lists),
    listClipCategories: listClipCategories(access, lists),
    recogniseSubtitles: recogniseSubtitles(orders),
    showSubtitles: showSubtitles(access, tasks),
    makeMusic: makeMusic(orders),
    listMusic: music.list,
    showMusic: music.show,
    cancelMusic: music.cancel,
    deleteMusicFiles: deleteFiles(access, groups, 'music'),
    makeSpeech: makeSpeech(orders, made, files),
    listSpeech: speech.list,
    showSpeech: speech.show,
    cancelSpeech: speech.cancel,
    deleteSpeechFiles: deleteFiles(access, groups, 'speech'),
    cloneVoice: cloneVoice(orders),
    listVoices: listVoices(access, { tasks, lists, catalog: access.catalog }),
    showVoice: showVoice(access, tasks),
    deleteVoice: deleteVoice(access, tasks),
    extractTranscript: extractTranscript(orders, files),
    readFile: { handler: readFile(linked), ...UNCOUNTED },
  } satisfies Family
}
